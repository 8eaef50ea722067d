// Implements `muster status --watch`: shows a job's status until the job has ended.
#pragma once

#include "muster/base/status.h"
#include "muster/control/job_place.h"

namespace muster::cli {

// On a terminal it redraws the table each second; elsewhere it prints a line for each change of the
// job or a task. Returns when the job has ended, when no coordinator runs it any more, or on
// Ctrl-C.
absl::Status WatchStatus(control::JobPlace& place);

}  // namespace muster::cli
