// A file in memory for the CSV tests, without a FileSystem.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "muster/io/file_system.h"
#include "zlib.h"

namespace muster::formats {

class StringRandomAccessFile : public io::RandomAccessFile {
 public:
  explicit StringRandomAccessFile(std::string contents) : contents_(std::move(contents)) {}
  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    const size_t begin = std::min<uint64_t>(offset, contents_.size());
    return contents_.copy(buffer, size, begin);
  }
  const std::string& path() const override { return path_; }

 private:
  const std::string contents_;
  const std::string path_ = "text.csv";
};

inline std::shared_ptr<const io::RandomAccessFile> StringFile(std::string contents) {
  return std::make_shared<StringRandomAccessFile>(std::move(contents));
}

inline std::string Gzip(const std::string& text) {
  z_stream stream = {};
  deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace muster::formats
