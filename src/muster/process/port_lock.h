// The lock of one port. Not for use outside this layer.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/process/descriptor.h"
#include "muster/process/lock_file.h"

namespace muster::process {

struct PortLock {
  LockState state = LockState::kUnknown;
  Descriptor file;     // when locked
  std::string holder;  // if taken: the holder's text, such as "process 71"; may be empty
};

std::string PortLockPath(const std::string& folder, int port);
// Errors are those of AcquireLockFile.
absl::StatusOr<PortLock> LockPort(const std::string& folder, int port);
// Removes the file, then releases the lock.
void UnlockPort(const std::string& path, Descriptor file);

}  // namespace muster::process
