// A coordinator as a process of its own, in the background.
#pragma once

#include "muster/base/status.h"
#include "muster/control/job_folder.h"

namespace muster::cli {

// Returns when it has begun to run the job, or with why it cannot. It outlives this process.
absl::Status StartCoordinator(const control::JobFolder& folder);

}  // namespace muster::cli
