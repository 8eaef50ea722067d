#include "muster/formats/compression.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "muster/formats/zstd_stream.h"

namespace muster::formats {
namespace {

constexpr size_t kCompressedBlockBytes = size_t{256} << 10;

int WindowBits(Compression compression) {
  return compression == Compression::kGzip ? MAX_WBITS + 16 : MAX_WBITS;
}

uInt AtMostUInt(size_t size) {
  return static_cast<uInt>(std::min<size_t>(size, std::numeric_limits<uInt>::max()));
}

// zlib declares its input as non-const for historical reasons; it does not write to it.
Bytef* ZlibBytes(const char* data) { return reinterpret_cast<Bytef*>(const_cast<char*>(data)); }

class PlainStream : public ByteStream {
 public:
  PlainStream(std::shared_ptr<const io::RandomAccessFile> file, uint64_t offset)
      : file_(std::move(file)), offset_(offset) {}

  absl::StatusOr<size_t> Read(size_t size, char* buffer) override {
    MUSTER_ASSIGN_OR_RETURN(const size_t count, file_->Read(offset_, size, buffer));
    offset_ += count;
    return count;
  }

 private:
  std::shared_ptr<const io::RandomAccessFile> file_;
  uint64_t offset_;
};

class InflatingStream : public ByteStream {
 public:
  InflatingStream(std::shared_ptr<const io::RandomAccessFile> file, Compression compression,
                  uint64_t skip)
      : file_(std::move(file)),
        compression_(compression),
        skip_(skip),
        input_(std::make_unique_for_overwrite<char[]>(kCompressedBlockBytes)) {
    ready_ = inflateInit2(&zlib_, WindowBits(compression)) == Z_OK;
  }
  ~InflatingStream() override {
    if (ready_) inflateEnd(&zlib_);
  }
  InflatingStream(const InflatingStream&) = delete;
  InflatingStream& operator=(const InflatingStream&) = delete;

  absl::StatusOr<size_t> Read(size_t size, char* buffer) override {
    while (skip_ > 0) {
      MUSTER_ASSIGN_OR_RETURN(const size_t skipped,
                              Inflate(std::min<uint64_t>(size, skip_), buffer));
      if (skipped == 0) return size_t{0};
      skip_ -= skipped;
    }
    return Inflate(size, buffer);
  }

 private:
  absl::Status Broken(std::string_view what) const {
    return absl::DataLossError(StrCat("the ", CompressionName(compression_), " stream ", what,
                                      " at byte ", read_ - zlib_.avail_in, " of the file"));
  }

  absl::Status FillInput() {
    MUSTER_ASSIGN_OR_RETURN(const size_t count,
                            file_->Read(read_, kCompressedBlockBytes, input_.get()));
    read_ += count;
    zlib_.next_in = ZlibBytes(input_.get());
    zlib_.avail_in = static_cast<uInt>(count);
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> Inflate(size_t size, char* buffer) {
    if (!ready_) return absl::ResourceExhaustedError("no memory to inflate " + file_->path());
    zlib_.next_out = ZlibBytes(buffer);
    zlib_.avail_out = AtMostUInt(size);
    const uInt wanted = zlib_.avail_out;
    while (zlib_.avail_out == wanted) {
      if (zlib_.avail_in == 0) MUSTER_RETURN_IF_ERROR(FillInput());
      if (zlib_.avail_in == 0) {
        if (ended_) return size_t{0};
        return Broken("is cut: it ends");
      }
      if (ended_) {
        if (compression_ != Compression::kGzip)
          return Broken("has ended, but there are more bytes");
        inflateReset(&zlib_);  // another GZIP member follows
        ended_ = false;
      }
      const int result = inflate(&zlib_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        ended_ = true;
      } else if (result == Z_MEM_ERROR) {
        return absl::ResourceExhaustedError("no memory to inflate " + file_->path());
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        const char* why = zlib_.msg != nullptr ? zlib_.msg : "unknown error";
        return Broken(StrCat("is broken (", why, ")"));
      }
    }
    return size_t{wanted - zlib_.avail_out};
  }

  std::shared_ptr<const io::RandomAccessFile> file_;
  Compression compression_;
  uint64_t skip_;
  std::unique_ptr<char[]> input_;
  uint64_t read_ = 0;  // bytes of the file that were read
  z_stream zlib_{};
  bool ready_ = false;
  bool ended_ = false;  // at the end of a ZLIB stream or a GZIP member
};

}  // namespace

std::string_view CompressionName(Compression compression) {
  switch (compression) {
    case Compression::kNone:
      return "none";
    case Compression::kGzip:
      return "GZIP";
    case Compression::kZlib:
      return "ZLIB";
    case Compression::kZstd:
      return "ZSTD";
  }
  return "unknown";
}

bool IsZstd(std::string_view bytes) { return bytes.starts_with("\x28\xb5\x2f\xfd"); }

absl::StatusOr<Compression> DetectTextCompression(const io::RandomAccessFile& file) {
  char magic[4];
  MUSTER_ASSIGN_OR_RETURN(const size_t count, file.Read(0, sizeof magic, magic));
  const std::string_view bytes(magic, count);
  if (bytes.starts_with("\x1f\x8b")) return Compression::kGzip;
  return IsZstd(bytes) ? Compression::kZstd : Compression::kNone;
}

std::unique_ptr<ByteStream> NewByteStream(std::shared_ptr<const io::RandomAccessFile> file,
                                          Compression compression, uint64_t offset) {
  if (compression == Compression::kNone) {
    return std::make_unique<PlainStream>(std::move(file), offset);
  }
  if (compression == Compression::kZstd) return NewZstdStream(std::move(file), offset);
  return std::make_unique<InflatingStream>(std::move(file), compression, offset);
}

struct Deflater::Stream {
  z_stream zlib{};
  bool ready = false;
  std::unique_ptr<char[]> output;
};

Deflater::Deflater(Compression compression) : stream_(std::make_unique<Stream>()) {
  constexpr int kLevel = 6, kMemoryLevel = 9;
  stream_->output = std::make_unique_for_overwrite<char[]>(kCompressedBlockBytes);
  stream_->ready = deflateInit2(&stream_->zlib, kLevel, Z_DEFLATED, WindowBits(compression),
                                kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK;
}

Deflater::~Deflater() {
  if (stream_->ready) deflateEnd(&stream_->zlib);
}

absl::Status Deflater::Write(std::string_view bytes, io::WritableFile* file) {
  while (!bytes.empty()) {
    const size_t size = AtMostUInt(bytes.size());
    MUSTER_RETURN_IF_ERROR(Run(bytes.substr(0, size), false, file));
    bytes.remove_prefix(size);
  }
  return absl::OkStatus();
}

absl::Status Deflater::Finish(io::WritableFile* file) { return Run({}, true, file); }

absl::Status Deflater::Run(std::string_view bytes, bool finish, io::WritableFile* file) {
  if (!stream_->ready) return absl::ResourceExhaustedError("no memory to compress " + file->path());
  z_stream& zlib = stream_->zlib;
  zlib.next_in = ZlibBytes(bytes.data());
  zlib.avail_in = static_cast<uInt>(bytes.size());
  int result = Z_OK;
  do {
    zlib.next_out = ZlibBytes(stream_->output.get());
    zlib.avail_out = kCompressedBlockBytes;
    result = deflate(&zlib, finish ? Z_FINISH : Z_NO_FLUSH);
    const size_t made = kCompressedBlockBytes - zlib.avail_out;
    MUSTER_RETURN_IF_ERROR(file->Append({stream_->output.get(), made}));
  } while (zlib.avail_in > 0 || (finish && result != Z_STREAM_END));
  return absl::OkStatus();
}

}  // namespace muster::formats
