// Image files of any bytes: whatever comes, the check ends, and what it takes it takes with
// anything after it.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "muster/formats/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto found = muster::formats::CheckImage(bytes);
  if (!found.ok()) return 0;
  const auto again = muster::formats::CheckImage(bytes + '\xff');
  if (!again.ok() || again->height != found->height || again->width != found->width) std::abort();
  return 0;
}
