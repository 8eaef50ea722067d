// A coordinator as a process of its own, in the background.
#pragma once

#include <memory>

#include "muster/base/status.h"
#include "muster/control/job_folder.h"
#include "muster/process/child.h"

namespace muster::cli {

// Returns when it has begun to run the job, or with why it cannot.
absl::StatusOr<std::unique_ptr<process::Child>> StartCoordinator(const control::JobFolder& folder);

// The same with a supervisor beside it, which starts it again when it dies and ends with it. Both
// outlive this process.
absl::Status StartSupervised(const control::JobFolder& folder);

}  // namespace muster::cli
