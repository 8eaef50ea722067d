// Describes, for `muster run --dry-run`, the tasks that a job would have, before anything is
// started.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/cli/jobs/job_request.h"

namespace muster::cli {

// For people: one block per task with its command, environment, folder and TF_CONFIG. Addresses are
// only known once the tasks exist: "worker-1:2222" stands for the address of worker 1. Errors are
// those of ParseProcess() and TfConfig().
absl::StatusOr<std::string> DescribeTasks(const JobRequest& request);

}  // namespace muster::cli
