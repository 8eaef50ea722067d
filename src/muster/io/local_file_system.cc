#include "muster/io/local_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "muster/io/local_file.h"
#include "muster/io/path_scheme.h"

namespace muster::io {
namespace {

constexpr mode_t kSharedMode = 0666, kPrivateMode = 0600;

int OpenRetrying(const std::string& path, int flags, mode_t mode = kSharedMode) {
  int fd;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

class LocalFileSystem : public FileSystem {
 public:
  // `mode` is the mode of the files that it makes, less the process's umask.
  explicit LocalFileSystem(mode_t mode) : mode_(mode) {}

  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(const std::string& path) override {
    if (path == kStandardInput) return NewStandardInput(path);
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
    return NewLocalFile(path, fd.Release());
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWrite(const std::string& path) override {
    return OpenWritable(path, O_WRONLY | O_CREAT | O_TRUNC, mode_);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForLargeWrite(
      const std::string& path) override {
    MUSTER_ASSIGN_OR_RETURN(const std::string local, LocalPath(path));
    const int fd = OpenRetrying(local, O_WRONLY | O_CREAT | O_TRUNC, mode_);
    if (fd < 0) return LocalStatus(errno, "open for writing", path);
    return NewLocalLargeFile(path, fd);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) override {
    return OpenWritable(path, O_WRONLY | O_CREAT | O_APPEND, mode_);
  }

  absl::StatusOr<FileInfo> Stat(const std::string& path) override {
    MUSTER_ASSIGN_OR_RETURN(const std::string local, LocalPath(path));
    struct stat info;
    if (stat(local.c_str(), &info) != 0) return LocalStatus(errno, "stat", path);
    FileInfo result;
    result.is_folder = S_ISDIR(info.st_mode);
    result.size = result.is_folder ? 0 : static_cast<uint64_t>(info.st_size);
    result.modified_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
    result.identity = StrCat(info.st_dev, ":", info.st_ino);
    result.owner = StrCat(info.st_uid);
    result.group = StrCat(info.st_gid);
    result.mode = static_cast<int>(info.st_mode & 07777);
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
    return NewLocalWritableFile(path, fd);
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
