// The fork and exec under Child::Start. Not for use outside this layer.
#pragma once

#include "muster/process/child.h"

namespace muster::process {

struct Spawned {
  pid_t pid = -1;
  Descriptor pidfd;
};

// As described at Child::Start; the caller waits for the process.
absl::StatusOr<Spawned> Spawn(const ChildSpec& spec);

}  // namespace muster::process
