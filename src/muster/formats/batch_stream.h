// Batch streams (docs/formats/batch_stream.md): batches of rows from another program, through a
// pipe or a file, a column at a time, read once and in order.
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

// Parses the first kStreamPrefixBytes of a stream: returns how many bytes of header follow.
// DATA_LOSS if it is not a batch stream or has an unknown version.
absl::StatusOr<size_t> ParseStreamPrefix(std::string_view prefix);

// Precedes each batch; no rows: the end of the stream.
struct FramePrefix {
  uint32_t rows = 0;
  uint32_t crc = 0;    // CRC-32 (zlib's) of the payload
  uint64_t bytes = 0;  // of the payload; at most kMaxFrameBytes
};
absl::StatusOr<FramePrefix> ParseFramePrefix(std::string_view prefix);

// Decodes the batches of one stream to rows of `schema`. One owner thread.
class BatchStreamDecoder {
 public:
  // `header`: the bytes after the stream's prefix. Columns that the schema does not name are
  // skipped. INVALID_ARGUMENT when a field that needs a value has no column, or one of another type
  // (ints fill float fields); DATA_LOSS when the header is broken.
  static absl::StatusOr<std::unique_ptr<BatchStreamDecoder>> Create(std::string_view header,
                                                                    const Schema& schema);
  virtual ~BatchStreamDecoder() = default;
  // Appends the batch's rows; strings point into `payload`, which *columns keeps alive. DATA_LOSS:
  // broken; INVALID_ARGUMENT: a missing value without a default. After an error *columns is partly
  // filled: Clear() it.
  virtual absl::Status Decode(const FramePrefix& frame,
                              const std::shared_ptr<const std::string>& payload,
                              Columns* columns) = 0;
};

}  // namespace muster::formats
