// Any bytes as an aggregated log of YARN: refused, or read, within memory that the bytes justify.
#include <cstdint>
#include <string_view>

#include "muster/launch/yarn/aggregated_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)muster::launch::yarn::ParseAggregatedLog(bytes, "fuzz");
  return 0;
}
