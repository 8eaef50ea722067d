// PNG and JPEG files as a record's field has them, checked without decoding: what is cut, changed
// or something else is found while rows are read, where it can be left out and counted.
#pragma once

#include <cstdint>
#include <string_view>

#include "muster/base/status.h"

namespace muster::formats {

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
};

// Of a PNG: its chunks up to IEND, and the checksums of those that a decoder must read (not of
// ancillary ones, which decoders skip when they are broken). Of a JPEG: its markers from SOI to
// EOI. What follows the end is ignored, as decoders do. INVALID_ARGUMENT says what is wrong,
// without naming the file. What it takes may still not decode: a JPEG has no checksums, and a PNG
// may have been written wrong.
absl::StatusOr<ImageSize> CheckImage(std::string_view bytes);

}  // namespace muster::formats
