// Checks any bytes as an image file: the check must end, and an image that it accepts must also be
// accepted with bytes after it.
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
