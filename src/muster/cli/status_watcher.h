// `muster status --watch`: how a job is, until it has ended.
#pragma once

#include "muster/base/status.h"
#include "muster/control/job_folder.h"

namespace muster::cli {

// On a terminal the table, drawn anew each second; elsewhere a line for each change of the job or a
// task. Ends with the job, when nobody runs it any more, or with Ctrl-C.
absl::Status WatchStatus(const control::JobFolder& folder);

}  // namespace muster::cli
