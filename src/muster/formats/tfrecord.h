// TFRecord files: uint64 length, masked CRC-32C of the length, data, masked CRC-32C of the data;
// plain, or the whole file as one stream of GZIP, ZLIB or (only for reading) Zstandard. See
// docs/formats/tfrecord.md; source: tensorflow/core/lib/io/record_{reader,writer}.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/formats/compression.h"
#include "muster/io/file_system.h"

namespace muster::formats {

// Finds the compression by the file's first bytes; kNone if they match no known header. If a plain
// file's first length looks like another header, the CRC of that length decides.
absl::StatusOr<Compression> DetectCompression(const io::RandomAccessFile& file);

// Whether `bytes` begin with the header of a record, whose length has the right CRC.
bool BeginsWithRecord(std::string_view bytes);

constexpr uint64_t kTfRecordOverhead = 16;
constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 30;  // longer records are refused as broken

// Reads records one after the other, from `offset` on. One owner thread. Errors are DATA_LOSS
// "FILE: record at byte N: ..." (for compressed files N counts uncompressed bytes): truncated file,
// wrong CRC of length or data, a length over kMaxRecordBytes or beyond the file, broken
// compression. Memory is allocated as bytes arrive, never by the length alone: 256 KiB (twice that
// for a compressed file), and more only for a larger record.
class TfRecordReader {
 public:
  // Keeps `file`.
  static absl::StatusOr<std::unique_ptr<TfRecordReader>> Open(
      std::shared_ptr<const io::RandomAccessFile> file, Compression compression,
      uint64_t offset = 0);
  virtual ~TfRecordReader() = default;

  // Sets *record to the next record, valid until the next call; returns false at the end. After an
  // error in the data of a record whose length was valid, *record is that data, SkippableError() is
  // true, and the next call continues after it. After any other error the reader keeps failing.
  virtual absl::StatusOr<bool> Next(std::string_view* record) = 0;
  virtual bool SkippableError() const = 0;
  // The (uncompressed) byte offset of the record that the next call will read.
  virtual uint64_t offset() const = 0;
};

// Checks and finds all records in `bytes`, which are complete framed records (a chunk cut by the
// file's index). Calls `found(offset of data in bytes, size)` for each.
template <typename Found>
absl::Status ForEachRecord(std::string_view bytes, std::string_view file, uint64_t file_offset,
                           Found&& found);

class TfRecordWriter {
 public:
  // Appends to `file`, which the writer owns; GZIP and ZLIB have level 6.
  static absl::StatusOr<std::unique_ptr<TfRecordWriter>> Create(
      std::unique_ptr<io::WritableFile> file, Compression compression);
  virtual ~TfRecordWriter() = default;
  virtual absl::Status Write(std::string_view record) = 0;
  // The number of uncompressed bytes written so far: the offset of the next record.
  virtual uint64_t offset() const = 0;
  // Ends the stream, syncs and closes the file.
  virtual absl::Status Close() = 0;
};

// Checks one frame at the beginning of `bytes`. On success `*record` is the data inside `bytes`,
// and the size of the whole frame is returned. `file` and `file_offset` identify it in errors. If
// only the data's CRC is wrong, *record is set as well, so that a caller can continue after the
// frame (record->size() + kTfRecordOverhead); after any other error it is empty with a null data().
absl::StatusOr<uint64_t> ParseRecord(std::string_view bytes, std::string_view file,
                                     uint64_t file_offset, std::string_view* record);

template <typename Found>
absl::Status ForEachRecord(std::string_view bytes, std::string_view file, uint64_t file_offset,
                           Found&& found) {
  uint64_t offset = 0;
  while (offset < bytes.size()) {
    std::string_view record;
    MUSTER_ASSIGN_OR_RETURN(const uint64_t frame,
                            ParseRecord(bytes.substr(offset), file, file_offset + offset, &record));
    found(static_cast<uint64_t>(record.data() - bytes.data()), record.size());
    offset += frame;
  }
  return absl::OkStatus();
}

}  // namespace muster::formats
