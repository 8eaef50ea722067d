// Compressed streams over files: GZIP (RFC 1952) and ZLIB (RFC 1950) through zlib, Zstandard
// (RFC 8878, only to read) through zstd_stream.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::formats {

enum class Compression { kNone, kGzip, kZlib, kZstd };

std::string_view CompressionName(Compression compression);  // "none", "GZIP", "ZLIB", "ZSTD"

// Finds the compression of a text file by its first bytes: none, GZIP or Zstandard. (A text may
// begin with ZLIB's two bytes.)
absl::StatusOr<Compression> DetectTextCompression(const io::RandomAccessFile& file);

// Whether `bytes` begin with the magic number of a Zstandard frame.
bool IsZstd(std::string_view bytes);

// The (decompressed) bytes of a file, from start to end. One owner thread.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Reads up to `size` > 0 bytes; returns 0 only at the end. DATA_LOSS for a broken or truncated
  // compressed stream, or for bytes after its end; the message gives the byte in the file, but not
  // the file's name, which the caller adds in its own way. Other errors are the file's and name it.
  virtual absl::StatusOr<size_t> Read(size_t size, char* buffer) = 0;
};

// Starts at (uncompressed) byte `offset`; the first Read decompresses a compressed file up to
// there. Several consecutive GZIP members, or Zstandard frames, are one stream. Keeps `file`. A
// compressed stream takes about 300 KiB.
std::unique_ptr<ByteStream> NewByteStream(std::shared_ptr<const io::RandomAccessFile> file,
                                          Compression compression, uint64_t offset = 0);

// Compresses into a file that the caller owns, with level 6 and zlib's largest memory level, as
// TensorFlow's ZlibOutputBuffer does. Takes about 400 KiB. One owner thread.
class Deflater {
 public:
  explicit Deflater(Compression compression);  // kGzip or kZlib
  ~Deflater();
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  absl::Status Write(std::string_view bytes, io::WritableFile* file);
  // Ends the stream; nothing may be written after it.
  absl::Status Finish(io::WritableFile* file);

 private:
  struct Stream;
  absl::Status Run(std::string_view bytes, bool finish, io::WritableFile* file);

  std::unique_ptr<Stream> stream_;
};

}  // namespace muster::formats
