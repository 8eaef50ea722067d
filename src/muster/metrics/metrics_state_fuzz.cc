// Parses any bytes as the state of metrics: either they are refused, or they are written back
// unchanged and can be merged without harm.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "muster/metrics/metrics.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace metrics = muster::metrics;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto state = metrics::ParseState(bytes, "state");
  if (!state.ok()) return 0;
  const std::string again = metrics::Serialize(*state);
  // Older versions are written back as the current one.
  if (bytes[8] == 2 ? again != bytes : !metrics::ParseState(again, "again").ok()) std::abort();
  for (const std::string kind : {"binary", "multi_class", "multi_label", "regression"}) {
    const int classes = kind == "binary" ? 2 : 3;
    const auto fresh = metrics::NewMetrics({.kind = kind, .classes = classes}, {}, {});
    if (!fresh.ok()) std::abort();
    if ((*fresh)->Merge(*state).ok()) (*fresh)->Values();
  }
  return 0;
}
