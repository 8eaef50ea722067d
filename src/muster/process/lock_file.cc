#include "muster/process/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace muster::process {
namespace {

constexpr int kMaxTries = 100;  // each lost to somebody who made or removed the file in between
// It follows no link and waits for no fifo, whatever other users have put into the folder.
constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

Descriptor OpenLockFile(const std::string& path, mode_t mode) {
  Descriptor file(open(path.c_str(), O_RDWR | kFlags));
  if (!file.valid() && errno == EACCES) file.Reset(open(path.c_str(), O_RDONLY | kFlags));
  // The file is only ever created (O_EXCL): fs.protected_regular refuses O_CREAT on another user's
  // file.
  if (!file.valid() && errno == ENOENT) {
    file.Reset(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | kFlags, mode));
    if (file.valid()) fchmod(file.get(), mode);  // past the umask
  }
  return file;
}

bool Exists(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

bool IsPlainFile(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

bool IsFoldersFault(int error_number) {
  return error_number == ENOSPC || error_number == EDQUOT || error_number == EROFS ||
         error_number == EMFILE || error_number == ENFILE || error_number == ENOTDIR ||
         error_number == ENOENT;
}

}  // namespace

absl::StatusOr<LockedFile> AcquireLockFile(const std::string& path, mode_t mode,
                                           const std::string& what) {
  for (int i = 0; i < kMaxTries; ++i) {
    Descriptor file = OpenLockFile(path, mode);
    const int error = errno;
    if (!file.valid() && error == EEXIST) continue;
    if (!file.valid() && (IsFoldersFault(error) || !Exists(path))) {
      return ErrnoStatus(error, StrCat("lock ", what, " by ", path));
    }
    if (!file.valid() || !IsPlainFile(file.get())) return LockedFile{};
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      return LockedFile{.state = LockState::kTaken, .file = std::move(file)};
    }
    if (!IsStillThere(file.get(), path)) continue;
    return LockedFile{.state = LockState::kLocked, .file = std::move(file)};
  }
  return LockedFile{.state = LockState::kTaken, .file = {}};
}

bool WriteLockFile(int fd, const std::string& text) {
  return ftruncate(fd, 0) == 0 &&
         pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

bool IsStillThere(int fd, const std::string& path) {
  struct stat ours, there;
  return fstat(fd, &ours) == 0 && lstat(path.c_str(), &there) == 0 && ours.st_ino == there.st_ino &&
         ours.st_dev == there.st_dev;
}

}  // namespace muster::process
