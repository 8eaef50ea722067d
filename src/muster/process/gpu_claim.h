// Exclusive claims of jobs, of any user, on GPUs of this machine: one lock file per GPU, in the
// folder of the port locks (ports.h).
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/process/descriptor.h"

namespace muster::process {

struct GpuClaim {
  std::string gpu = {};  // its name for CUDA_VISIBLE_DEVICES
  // Shared: the claim lasts until the last process that holds or inherited it closes it. Invalid if
  // the lock file belongs to another user and cannot be opened: nothing is claimed then.
  Descriptor lock = {};
};

// Claims `wanted` of `visible` for `holder`, in their order; the names of GPUs are compared as
// text. GPUs whose lock names the same holder can be claimed again although other processes share
// the lock: so a restarted coordinator gets the GPUs that its tasks still hold.
// FAILED_PRECONDITION: too few are left; the message says who has the others. `folder`: "":
// DefaultLockFolder().
absl::StatusOr<std::vector<GpuClaim>> ClaimGpus(const std::vector<std::string>& visible, int wanted,
                                                const std::string& holder,
                                                const std::string& folder = "");

}  // namespace muster::process
