// The lock of one port: flock on a file that all users of the machine may share. Not for use
// outside this layer.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/process/descriptor.h"

namespace muster::process {

enum class LockState {
  kLocked,
  kTaken,    // somebody holds it
  kUnknown,  // the file is another user's and cannot be opened, or is no plain file
};

struct PortLock {
  LockState state = LockState::kUnknown;
  Descriptor file;     // when locked
  std::string holder;  // when taken: what the holder wrote, such as "process 71"; may be empty
};

std::string PortLockPath(const std::string& folder, int port);
// An error only for what holds for the folder: missing, not writable, disk full.
absl::StatusOr<PortLock> LockPort(const std::string& folder, int port);
// Removes the file, then lets go.
void UnlockPort(const std::string& path, Descriptor file);

}  // namespace muster::process
