// Any bytes as the state of metrics: refused, or they come back; and merging it, whatever is in it.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "muster/metrics/metrics.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace metrics = muster::metrics;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto state = metrics::ParseState(bytes, "state");
  if (!state.ok()) return 0;
  if (metrics::Serialize(*state) != bytes) std::abort();
  for (const auto kind :
       {muster::engine::HeadKind::kBinary, muster::engine::HeadKind::kMultiClass,
        muster::engine::HeadKind::kMultiLabel, muster::engine::HeadKind::kRegression}) {
    const int classes = kind == muster::engine::HeadKind::kBinary ? 2 : 3;
    const auto fresh = metrics::NewMetrics({.kind = kind, .classes = classes}, {}, {});
    if (!fresh.ok()) std::abort();
    if ((*fresh)->Merge(*state).ok()) (*fresh)->Values();
  }
  return 0;
}
