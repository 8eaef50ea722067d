// Batch streams (docs/formats/batch_stream.md): batches of rows as another program hands them over,
// through a pipe or a file, a column at a time, read once and in order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/columns.h"
#include "muster/formats/schema.h"

namespace muster::formats {

constexpr size_t kStreamPrefixBytes = 16;
constexpr size_t kFramePrefixBytes = 16;
constexpr uint64_t kMaxStreamHeaderBytes = uint64_t{1} << 24;
constexpr uint64_t kMaxFrameBytes = uint64_t{1} << 30;

// The first kStreamPrefixBytes of a stream: how many bytes of header follow. DATA_LOSS for what is
// no batch stream or of an unknown version.
absl::StatusOr<size_t> ParseStreamPrefix(std::string_view prefix);

// What stands before each batch; no rows: the end of the stream.
struct FramePrefix {
  uint32_t rows = 0;
  uint32_t crc = 0;    // CRC-32 (zlib's) of the payload
  uint64_t bytes = 0;  // of the payload; at most kMaxFrameBytes
};
absl::StatusOr<FramePrefix> ParseFramePrefix(std::string_view prefix);

// Batches of one stream to rows of `schema`. One owner thread.
class BatchStreamDecoder {
 public:
  // `header`: what follows the stream's prefix. Columns that the schema does not name are passed
  // over. INVALID_ARGUMENT when a field that needs a value has no column, or one of another type
  // (ints fill float fields); DATA_LOSS when the header is broken.
  static absl::StatusOr<std::unique_ptr<BatchStreamDecoder>> Create(std::string_view header,
                                                                    const Schema& schema);
  virtual ~BatchStreamDecoder() = default;
  // Appends the batch's rows; strings point into `payload`, which *columns keeps. On an error (all
  // are DATA_LOSS) *columns is left half filled: Clear() it.
  virtual absl::Status Decode(const FramePrefix& frame,
                              const std::shared_ptr<const std::string>& payload,
                              Columns* columns) = 0;
};

}  // namespace muster::formats
