// Batch streams (docs/formats/batch_stream.md): batches of rows from another program, column by
// column, through a pipe or a file; they are read once and in order.
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

// Parses the first kStreamPrefixBytes of a stream, and returns how many bytes of header follow.
// DATA_LOSS if it is not a batch stream or has an unknown version.
absl::StatusOr<size_t> ParseStreamPrefix(std::string_view prefix);

// Comes before each batch. One without rows marks the end of the stream.
struct FramePrefix {
  uint32_t rows = 0;
  uint32_t crc = 0;    // CRC-32 of the payload, as in zlib
  uint64_t bytes = 0;  // size of the payload; at most kMaxFrameBytes
};
absl::StatusOr<FramePrefix> ParseFramePrefix(std::string_view prefix);

// The columns of a stream as fields without defaults, from `header`, which has the bytes after the
// stream's prefix. DATA_LOSS if it is broken.
absl::StatusOr<Schema> ParseStreamSchema(std::string_view header);

// Decodes the batches of one stream into rows of `schema`. One owner thread.
class BatchStreamDecoder {
 public:
  // `header` has the bytes after the stream's prefix. Columns that the schema does not name are
  // skipped. INVALID_ARGUMENT if a field that needs a value has no column, or a column of another
  // type (ints fill float fields); DATA_LOSS if the header is broken.
  static absl::StatusOr<std::unique_ptr<BatchStreamDecoder>> Create(std::string_view header,
                                                                    const Schema& schema);
  virtual ~BatchStreamDecoder() = default;
  // Appends the batch's rows; strings point into `payload`, which *columns keeps alive. DATA_LOSS
  // for a broken batch; INVALID_ARGUMENT for a missing value without a default. After an error
  // *columns is partly filled: call Clear().
  virtual absl::Status Decode(const FramePrefix& frame,
                              const std::shared_ptr<const std::string>& payload,
                              Columns* columns) = 0;
};

// Encodes rows as a stream whose columns are all fields of `schema`, at least one. Immutable.
class BatchStreamEncoder {
 public:
  explicit BatchStreamEncoder(const Schema& schema) : schema_(schema) {}
  // What comes before the first frame.
  std::string Start() const;
  // Appends a frame with all rows, at least one, of `columns`, which are the schema's.
  // INVALID_ARGUMENT if they need more than kMaxFrameBytes.
  absl::Status Encode(const Columns& columns, std::string* stream) const;
  // The end frame.
  static std::string End();

 private:
  const Schema schema_;
};

}  // namespace muster::formats
