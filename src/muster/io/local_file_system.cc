#include "muster/io/local_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "muster/io/path_scheme.h"

namespace muster::io {
namespace {

constexpr size_t kWriteBufferBytes = size_t{64} << 10;
constexpr size_t kLargeBlockBytes = size_t{4} << 20;
constexpr size_t kBlockAlignment = 4096;  // of memory and offsets past the page cache

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

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

constexpr mode_t kSharedMode = 0666, kPrivateMode = 0600;

int OpenRetrying(const std::string& path, int flags, mode_t mode = kSharedMode) {
  int fd;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

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

// Reads a pipe or a socket, where bytes that were read are gone.
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

class LocalFileSystem : public FileSystem {
 public:
  // `mode` is the mode of the files that it makes, less the process's umask.
  explicit LocalFileSystem(mode_t mode) : mode_(mode) {}

  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(const std::string& path) override {
    if (path == kStandardInput) return std::make_unique<StandardInput>(path);
    MUSTER_ASSIGN_OR_RETURN(const std::string local, LocalPath(path));
    // O_NONBLOCK is set because opening a pipe must not wait for its writer.
    Descriptor fd(OpenRetrying(local, O_RDONLY | O_NONBLOCK));
    if (fd.get() < 0) return LocalStatus(errno, "open", path);
    struct stat info;
    if (fstat(fd.get(), &info) != 0) return LocalStatus(errno, "open", path);
    if (S_ISDIR(info.st_mode)) return LocalStatus(EISDIR, "open", path);
    if (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)) {
      return absl::FailedPreconditionError(
          StrCat("open ", path, ": a pipe cannot be read at a position; give a file"));
    }
    return std::make_unique<LocalRandomAccessFile>(path, fd.Release());
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWrite(const std::string& path) override {
    return OpenWritable(path, O_WRONLY | O_CREAT | O_TRUNC, mode_);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForLargeWrite(
      const std::string& path) override {
    MUSTER_ASSIGN_OR_RETURN(const std::string local, LocalPath(path));
    const int fd = OpenRetrying(local, O_WRONLY | O_CREAT | O_TRUNC, mode_);
    if (fd < 0) return LocalStatus(errno, "open for writing", path);
    return std::make_unique<LocalLargeFile>(path, fd);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) override {
    return OpenWritable(path, O_WRONLY | O_CREAT | O_APPEND, mode_);
  }

  absl::StatusOr<FileInfo> Stat(const std::string& path) override {
    MUSTER_ASSIGN_OR_RETURN(const std::string local, LocalPath(path));
    struct stat info;
    if (stat(local.c_str(), &info) != 0) return LocalStatus(errno, "look at", path);
    FileInfo result;
    result.is_folder = S_ISDIR(info.st_mode);
    result.size = result.is_folder ? 0 : static_cast<uint64_t>(info.st_size);
    result.modified_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
    result.identity = StrCat(info.st_dev, ":", info.st_ino);
    return result;
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    MUSTER_ASSIGN_OR_RETURN(const std::string local, LocalPath(folder));
    DIR* directory = opendir(local.c_str());
    if (directory == nullptr) return LocalStatus(errno, "list", folder);
    std::vector<std::string> names;
    int error = 0;
    while (true) {
      errno = 0;
      const dirent* entry = readdir(directory);
      if (entry == nullptr) {
        error = errno;
        break;
      }
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    closedir(directory);
    if (error != 0) return LocalStatus(error, "list", folder);
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::Status MakeFolders(const std::string& folder) override {
    MUSTER_ASSIGN_OR_RETURN(const std::string local, LocalPath(folder));
    for (size_t end = 0; end < local.size();) {
      end = std::min(local.find('/', end + 1), local.size());
      const std::string part = local.substr(0, end);
      if (mkdir(part.c_str(), 0777) == 0) continue;
      const int error = errno;
      struct stat info;
      const std::string name = part == local ? folder : StrCat(folder, " (", part, ")");
      if (stat(part.c_str(), &info) != 0) return LocalStatus(error, "make folder", name);
      if (!S_ISDIR(info.st_mode)) return LocalStatus(ENOTDIR, "make folder", name);
    }
    return absl::OkStatus();
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    MUSTER_ASSIGN_OR_RETURN(const std::string local_from, LocalPath(from));
    MUSTER_ASSIGN_OR_RETURN(const std::string local_to, LocalPath(to));
    if (rename(local_from.c_str(), local_to.c_str()) == 0) return absl::OkStatus();
    const int error = errno;
    return LocalStatus(error, "rename", StrCat(from, " to ", to));
  }

  absl::Status Remove(const std::string& path) override {
    MUSTER_ASSIGN_OR_RETURN(const std::string local, LocalPath(path));
    if (unlink(local.c_str()) != 0) return LocalStatus(errno, "remove", path);
    return absl::OkStatus();
  }

  absl::Status RemoveAll(const std::string& folder) override {
    MUSTER_ASSIGN_OR_RETURN(const std::string local, LocalPath(folder));
    std::error_code error;
    std::filesystem::remove_all(local, error);
    if (error) return LocalStatus(error.value(), "remove folder", folder);
    return absl::OkStatus();
  }

  absl::Status SyncFolder(const std::string& folder) override {
    MUSTER_ASSIGN_OR_RETURN(const std::string local, LocalPath(folder));
    const Descriptor fd(OpenRetrying(local, O_RDONLY | O_DIRECTORY));
    if (fd.get() < 0) return LocalStatus(errno, "sync folder", folder);
    if (fsync(fd.get()) != 0 && errno != EINVAL) return LocalStatus(errno, "sync folder", folder);
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<std::unique_ptr<WritableFile>> OpenWritable(const std::string& path,
                                                                    int flags, mode_t mode) {
    MUSTER_ASSIGN_OR_RETURN(const std::string local, LocalPath(path));
    const int fd = OpenRetrying(local, flags, mode);
    if (fd < 0) return LocalStatus(errno, "open for writing", path);
    return std::make_unique<LocalWritableFile>(path, fd);
  }

  const mode_t mode_;
};

}  // namespace

std::unique_ptr<FileSystem> NewLocalFileSystem() {
  return std::make_unique<LocalFileSystem>(kSharedMode);
}

std::unique_ptr<FileSystem> NewPrivateFileSystem() {
  return std::make_unique<LocalFileSystem>(kPrivateMode);
}

}  // namespace muster::io
