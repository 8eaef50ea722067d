// GZIP (RFC 1952) and ZLIB (RFC 1950) streams over files, through zlib.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::formats {

enum class Compression { kNone, kGzip, kZlib };

std::string_view CompressionName(Compression compression);  // "none", "GZIP", "ZLIB"

// The (inflated) bytes of a file, front to back. One owner thread.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Up to `size` > 0 bytes; 0 only at the end. DATA_LOSS for a broken or cut compressed stream, or
  // for bytes behind its end, says at which byte of the file but does not name the file: the caller
  // does, with the place in its own terms. Other errors are the file's and name it.
  virtual absl::StatusOr<size_t> Read(size_t size, char* buffer) = 0;
};

// Starts at (uncompressed) byte `offset`; a compressed file is inflated up to there by the first
// Read. Several GZIP members one behind the other are one stream. Keeps `file`. A compressed
// stream takes about 300 KiB.
std::unique_ptr<ByteStream> NewByteStream(std::shared_ptr<const io::RandomAccessFile> file,
                                          Compression compression, uint64_t offset = 0);

// Compresses into a file that the caller owns; level 6 and zlib's largest memory level, as
// TensorFlow's ZlibOutputBuffer. Takes about 400 KiB. One owner thread.
class Deflater {
 public:
  explicit Deflater(Compression compression);  // not kNone
  ~Deflater();
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  absl::Status Write(std::string_view bytes, io::WritableFile* file);
  // Ends the stream; nothing may follow.
  absl::Status Finish(io::WritableFile* file);

 private:
  struct Stream;
  absl::Status Run(std::string_view bytes, bool finish, io::WritableFile* file);

  std::unique_ptr<Stream> stream_;
};

}  // namespace muster::formats
