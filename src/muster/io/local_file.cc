#include "muster/io/local_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "muster/base/strings.h"

namespace muster::io {
namespace {

constexpr size_t kWriteBufferBytes = size_t{64} << 10;
constexpr size_t kLargeBlockBytes = size_t{4} << 20;
constexpr size_t kBlockAlignment = 4096;  // of memory and offsets past the page cache

class LocalRandomAccessFile : public RandomAccessFile {
 public:
  LocalRandomAccessFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    size_t done = 0;
    while (done < size) {
      const ssize_t got =
          pread(fd_.get(), buffer + done, size - done, static_cast<off_t>(offset + done));
      if (got == 0) break;
      if (got < 0) {
        if (errno == EINTR) continue;
        const int error = errno;
        return LocalStatus(error, StrCat("read ", size - done, " bytes at ", offset + done, " of"),
                           path_);
      }
      done += static_cast<size_t>(got);
    }
    return done;
  }
  const std::string& path() const override { return path_; }

 private:
  std::string path_;
  Descriptor fd_;
};

class StandardInput : public RandomAccessFile {
 public:
  explicit StandardInput(std::string path) : path_(std::move(path)) {}

  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    if (offset != offset_) {
      return absl::FailedPreconditionError(StrCat(
          "read ", path_, " at ", offset, ": a pipe is read once and in order; give a file"));
    }
    size_t done = 0;
    while (done < size) {
      const ssize_t got = read(STDIN_FILENO, buffer + done, size - done);
      if (got == 0) break;
      if (got < 0) {
        if (errno == EINTR) continue;
        const int error = errno;
        return LocalStatus(error, "read", path_);
      }
      done += static_cast<size_t>(got);
    }
    offset_ += done;
    return done;
  }
  const std::string& path() const override { return path_; }

 private:
  std::string path_;
  mutable uint64_t offset_ = 0;
};

class LocalWritableFile : public WritableFile {
 public:
  LocalWritableFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {
    buffer_.reserve(kWriteBufferBytes);
  }

  absl::Status Append(std::string_view bytes) override {
    MUSTER_RETURN_IF_ERROR(Usable());
    if (buffer_.size() + bytes.size() > kWriteBufferBytes) {
      MUSTER_RETURN_IF_ERROR(FlushBuffer());
      if (bytes.size() >= kWriteBufferBytes) return WriteAll(bytes);
    }
    buffer_.append(bytes);
    return absl::OkStatus();
  }

  absl::Status Flush() override {
    MUSTER_RETURN_IF_ERROR(Usable());
    return FlushBuffer();
  }

  absl::Status Sync() override {
    MUSTER_RETURN_IF_ERROR(Flush());
    // EINVAL means a pipe or a device, which has nothing to sync.
    if (fsync(fd_.get()) != 0 && errno != EINVAL) return Fail(errno, "sync");
    return absl::OkStatus();
  }

  absl::Status Close() override {
    if (fd_.get() < 0) return Usable();
    absl::Status status = failure_.ok() ? FlushBuffer() : failure_;
    if (close(fd_.Release()) != 0 && errno != EINTR && status.ok()) {
      const int error = errno;
      status = LocalStatus(error, "close", path_);
    }
    failure_ = status;
    return status;
  }

  const std::string& path() const override { return path_; }

  // Sets whether writes from here on bypass the page cache, where the file system can do that.
  void SetDirect(bool direct) {
    const int flags = fcntl(fd_.get(), F_GETFL);
    const int wanted = direct ? flags | O_DIRECT : flags & ~O_DIRECT;
    direct_ = flags >= 0 && fcntl(fd_.get(), F_SETFL, wanted) == 0 && direct;
  }

  absl::Status Usable() const {
    if (!failure_.ok()) return failure_;
    if (fd_.get() < 0) return absl::FailedPreconditionError(StrCat(path_, " is closed"));
    return absl::OkStatus();
  }

 private:
  absl::Status Fail(int error, std::string_view operation) {
    failure_ = LocalStatus(error, operation, path_);
    return failure_;
  }

  absl::Status FlushBuffer() {
    MUSTER_RETURN_IF_ERROR(WriteAll(buffer_));
    buffer_.clear();
    return absl::OkStatus();
  }

  absl::Status WriteAll(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_.get(), bytes.data(), bytes.size());
      if (written < 0) {
        if (errno == EINTR) continue;
        // The file system has no direct writes, or not after a short write.
        if (errno == EINVAL && direct_) {
          SetDirect(false);
          continue;
        }
        return Fail(errno, "write");
      }
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  std::string path_;
  Descriptor fd_;
  std::string buffer_;
  bool direct_ = false;
  absl::Status failure_;
};

// Gathers aligned blocks for O_DIRECT. Bytes that are left at a flush are written through the page
// cache.
class LocalLargeFile : public WritableFile {
 public:
  LocalLargeFile(std::string path, int fd)
      : file_(std::move(path), fd),
        block_(static_cast<char*>(std::aligned_alloc(kBlockAlignment, kLargeBlockBytes))) {
    file_.SetDirect(true);
  }

  absl::Status Append(std::string_view bytes) override {
    MUSTER_RETURN_IF_ERROR(file_.Usable());
    while (!bytes.empty()) {
      const size_t size = std::min(bytes.size(), kLargeBlockBytes - size_);
      std::memcpy(block_.get() + size_, bytes.data(), size);
      size_ += size;
      bytes.remove_prefix(size);
      if (size_ == kLargeBlockBytes) MUSTER_RETURN_IF_ERROR(WriteBlock());
    }
    return absl::OkStatus();
  }
  absl::Status Flush() override {
    MUSTER_RETURN_IF_ERROR(WriteRest());
    return file_.Flush();
  }
  absl::Status Sync() override {
    MUSTER_RETURN_IF_ERROR(WriteRest());
    return file_.Sync();
  }
  absl::Status Close() override {
    absl::Status status = WriteRest();
    status.Update(file_.Close());
    return status;
  }
  const std::string& path() const override { return file_.path(); }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };

  absl::Status WriteBlock() {
    const size_t size = std::exchange(size_, 0);
    return file_.Append({block_.get(), size});
  }
  // After these bytes nothing is aligned.
  absl::Status WriteRest() {
    if (size_ == 0) return absl::OkStatus();
    file_.SetDirect(false);
    return WriteBlock();
  }

  LocalWritableFile file_;
  std::unique_ptr<char, Free> block_;
  size_t size_ = 0;
};

}  // namespace

absl::Status LocalStatus(int error_number, std::string_view operation, std::string_view path) {
  const std::string what = StrCat(operation, " ", path);
  absl::Status status = ErrnoStatus(error_number, what);
  switch (error_number) {
    case EISDIR:
    case ENOTDIR:
    case ENOTEMPTY:
    case EEXIST:
      return absl::FailedPreconditionError(status.message());
    default:
      return status;
  }
}

std::unique_ptr<RandomAccessFile> NewLocalFile(std::string path, int fd) {
  return std::make_unique<LocalRandomAccessFile>(std::move(path), fd);
}

std::unique_ptr<WritableFile> NewLocalWritableFile(std::string path, int fd) {
  return std::make_unique<LocalWritableFile>(std::move(path), fd);
}

std::unique_ptr<WritableFile> NewLocalLargeFile(std::string path, int fd) {
  return std::make_unique<LocalLargeFile>(std::move(path), fd);
}

std::unique_ptr<RandomAccessFile> NewStandardInput(std::string path) {
  return std::make_unique<StandardInput>(std::move(path));
}

}  // namespace muster::io
