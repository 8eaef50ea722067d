#include "muster/process/port_lock.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/numbers.h"

#include "muster/process/proc.h"

namespace muster::process {
namespace {

constexpr mode_t kMode = 0644;  // others must be able to open it for flock

std::string ReadHolder(const std::string& path) {
  const auto text = ReadSmallFile(path, 32);
  pid_t pid = 0;
  if (!text || !absl::SimpleAtoi(*text, &pid)) return "";
  const std::string command = CommandLine(pid);
  return command.empty() ? "" : StrCat("process ", pid, " (", command, ")");
}

}  // namespace

std::string PortLockPath(const std::string& folder, int port) {
  return StrCat(folder, "/port-", port, ".lock");
}

absl::StatusOr<PortLock> LockPort(const std::string& folder, int port) {
  const std::string path = PortLockPath(folder, port);
  MUSTER_ASSIGN_OR_RETURN(LockedFile locked, AcquireLockFile(path, kMode, StrCat("port ", port)));
  if (locked.state == LockState::kTaken) {
    return PortLock{.state = LockState::kTaken, .file = {}, .holder = ReadHolder(path)};
  }
  // The pid is only for messages. A file of another user, which is locked through O_RDONLY, cannot
  // be written.
  if (locked.state == LockState::kLocked) WriteLockFile(locked.file.get(), StrCat(getpid(), "\n"));
  return PortLock{.state = locked.state, .file = std::move(locked.file), .holder = ""};
}

void UnlockPort(const std::string& path, Descriptor file) {
  // The unlink fails for a file of another user in a sticky folder, which does no harm.
  if (file.valid()) unlink(path.c_str());
}

}  // namespace muster::process
