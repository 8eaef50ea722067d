// Starts a coordinator as a separate process in the background.
#pragma once

#include <memory>

#include "muster/base/status.h"
#include "muster/control/job_folder.h"
#include "muster/process/child.h"

namespace muster::cli {

// Returns once the coordinator has begun to run the job; an error says why it cannot.
absl::StatusOr<std::unique_ptr<process::Child>> StartCoordinator(const control::JobFolder& folder);

// As StartCoordinator, with a supervisor, which restarts the coordinator when it fails, and ends
// with it. Both outlive this process.
absl::Status StartSupervised(const control::JobFolder& folder);

}  // namespace muster::cli
