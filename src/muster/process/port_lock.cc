#include "muster/process/port_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/numbers.h"

#include "muster/process/proc.h"

namespace muster::process {
namespace {

constexpr int kMaxTries = 100;  // each lost to somebody who made or removed the file in between
constexpr mode_t kMode = 0644;  // others must be able to open it for flock
// No link is followed and no fifo waited for, whatever others have put into the folder.
constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

Descriptor OpenLockFile(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDWR | kFlags));
  if (!file.valid() && errno == EACCES) file.Reset(open(path.c_str(), O_RDONLY | kFlags));
  // Only ever made anew (O_EXCL): fs.protected_regular refuses O_CREAT on another user's file.
  if (!file.valid() && errno == ENOENT) {
    file.Reset(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | kFlags, kMode));
    if (file.valid()) fchmod(file.get(), kMode);  // past the umask
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

// False when its last holder removed it after we opened it: the lock would be of no file.
bool IsStillThere(int fd, const std::string& path) {
  struct stat ours, there;
  return fstat(fd, &ours) == 0 && lstat(path.c_str(), &there) == 0 && ours.st_ino == there.st_ino &&
         ours.st_dev == there.st_dev;
}

void WriteHolder(int fd) {
  const std::string text = StrCat(getpid(), "\n");
  // Only for messages; and a file of another user's, locked through O_RDONLY, cannot be written.
  if (ftruncate(fd, 0) == 0) (void)!pwrite(fd, text.data(), text.size(), 0);
}

std::string ReadHolder(const std::string& path) {
  const auto text = ReadSmallFile(path, 32);
  pid_t pid = 0;
  if (!text || !absl::SimpleAtoi(*text, &pid)) return "";
  const std::string command = CommandLine(pid);
  return command.empty() ? "" : StrCat("process ", pid, " (", command, ")");
}

bool IsFoldersFault(int error_number) {
  return error_number == ENOSPC || error_number == EDQUOT || error_number == EROFS ||
         error_number == EMFILE || error_number == ENFILE || error_number == ENOTDIR ||
         error_number == ENOENT;
}

}  // namespace

std::string PortLockPath(const std::string& folder, int port) {
  return StrCat(folder, "/port-", port, ".lock");
}

absl::StatusOr<PortLock> LockPort(const std::string& folder, int port) {
  const std::string path = PortLockPath(folder, port);
  for (int i = 0; i < kMaxTries; ++i) {
    Descriptor file = OpenLockFile(path);
    const int error = errno;
    if (!file.valid() && error == EEXIST) continue;
    if (!file.valid() && (IsFoldersFault(error) || !Exists(path))) {
      return ErrnoStatus(error, StrCat("lock port ", port, " by ", path));
    }
    if (!file.valid() || !IsPlainFile(file.get())) return PortLock{};
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      return PortLock{.state = LockState::kTaken, .file = {}, .holder = ReadHolder(path)};
    }
    if (!IsStillThere(file.get(), path)) continue;
    WriteHolder(file.get());
    return PortLock{.state = LockState::kLocked, .file = std::move(file), .holder = ""};
  }
  return PortLock{.state = LockState::kTaken, .file = {}, .holder = ""};
}

void UnlockPort(const std::string& path, Descriptor file) {
  // Fails for a file of another user's in a sticky folder, which is as well.
  if (file.valid()) unlink(path.c_str());
}

}  // namespace muster::process
