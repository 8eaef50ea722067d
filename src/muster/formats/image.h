// Checks PNG and JPEG files in a record's field without decoding them: truncated, changed or wrong
// data is found while rows are read, when a row can still be left out and counted.
#pragma once

#include <cstdint>
#include <string_view>

#include "muster/base/status.h"

namespace muster::formats {

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
};

// Checks a PNG's chunks up to IEND, and the checksums of the chunks that a decoder must read (not
// of ancillary ones, which decoders skip if they are broken); for a JPEG, checks its markers from
// SOI to EOI. Bytes after the end are ignored, as decoders do. INVALID_ARGUMENT says what is wrong,
// without naming the file. An accepted image may still fail to decode: a JPEG has no checksums, and
// a PNG may have been written wrong.
absl::StatusOr<ImageSize> CheckImage(std::string_view bytes);

}  // namespace muster::formats
