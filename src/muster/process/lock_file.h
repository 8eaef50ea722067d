// A file whose flock marks a resource of this machine, such as a port or a GPU, as taken. Users
// share the folder. Not for use outside this layer.
#pragma once

#include <sys/types.h>

#include <string>

#include "muster/base/status.h"
#include "muster/process/descriptor.h"

namespace muster::process {

enum class LockState {
  kLocked,
  kTaken,    // somebody holds it
  kUnknown,  // the file is another user's and cannot be opened, or is not a regular file
};

struct LockedFile {
  LockState state = LockState::kUnknown;
  Descriptor file = {};  // when locked: exclusively; when taken: open, unless it could not be
};

// Locks the file, which is made with `mode` if missing. Errors name `what`; they occur only for
// problems of the folder: missing, not writable, disk full.
absl::StatusOr<LockedFile> AcquireLockFile(const std::string& path, mode_t mode,
                                           const std::string& what);
// Replaces the file's text, which is for messages and for processes that share a lock. False if the
// file belongs to another user and may not be written.
bool WriteLockFile(int fd, const std::string& text);
// Whether `path` still names the file open as `fd`: its last holder may have removed it.
bool IsStillThere(int fd, const std::string& path);

}  // namespace muster::process
