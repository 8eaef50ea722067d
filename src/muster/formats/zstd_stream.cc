#include "muster/formats/zstd_stream.h"

#include <zstd.h>

#include <algorithm>
#include <utility>

namespace muster::formats {
namespace {

constexpr size_t kZstdBlockBytes = size_t{256} << 10;

class ZstdStream : public ByteStream {
 public:
  ZstdStream(std::shared_ptr<const io::RandomAccessFile> file, uint64_t skip)
      : file_(std::move(file)),
        skip_(skip),
        input_(std::make_unique_for_overwrite<char[]>(kZstdBlockBytes)),
        context_(ZSTD_createDCtx(), &ZSTD_freeDCtx) {}

  absl::StatusOr<size_t> Read(size_t size, char* buffer) override {
    while (skip_ > 0) {
      MUSTER_ASSIGN_OR_RETURN(const size_t skipped,
                              Decompress(std::min<uint64_t>(size, skip_), buffer));
      if (skipped == 0) return size_t{0};
      skip_ -= skipped;
    }
    return Decompress(size, buffer);
  }

 private:
  absl::Status Broken(std::string_view what) const {
    return absl::DataLossError(StrCat("the ZSTD stream ", what, " at byte ",
                                      read_ - (available_ - used_), " of the file"));
  }

  absl::StatusOr<size_t> Decompress(size_t size, char* buffer) {
    if (context_ == nullptr) {
      return absl::ResourceExhaustedError("no memory to decompress " + file_->path());
    }
    ZSTD_outBuffer output = {.dst = buffer, .size = size, .pos = 0};
    while (output.pos == 0) {
      if (used_ == available_) {
        MUSTER_ASSIGN_OR_RETURN(available_, file_->Read(read_, kZstdBlockBytes, input_.get()));
        used_ = 0;
        read_ += available_;
      }
      if (available_ == 0 && !inside_frame_) return size_t{0};
      ZSTD_inBuffer input = {.src = input_.get(), .size = available_, .pos = used_};
      const size_t left = ZSTD_decompressStream(context_.get(), &output, &input);
      used_ = input.pos;
      if (ZSTD_isError(left) != 0) {
        return Broken(StrCat("is broken (", ZSTD_getErrorName(left), ")"));
      }
      inside_frame_ = left != 0;
      if (available_ == 0 && output.pos == 0 && inside_frame_) return Broken("is cut: it ends");
    }
    return output.pos;
  }

  const std::shared_ptr<const io::RandomAccessFile> file_;
  uint64_t skip_;
  const std::unique_ptr<char[]> input_;
  size_t available_ = 0, used_ = 0;  // bytes of input_
  uint64_t read_ = 0;                // bytes of the file that were read
  bool inside_frame_ = false;
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_;
};

}  // namespace

std::unique_ptr<ByteStream> NewZstdStream(std::shared_ptr<const io::RandomAccessFile> file,
                                          uint64_t offset) {
  return std::make_unique<ZstdStream>(std::move(file), offset);
}

}  // namespace muster::formats
