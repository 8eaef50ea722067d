// What the verbs about a job ask: its coordinator where one lives, else its journal.
#pragma once

#include <string>

#include "muster/control/job_folder.h"
#include "muster/control/json.h"

namespace muster::cli {

// The job of that name under $MUSTER_HOME.
absl::StatusOr<control::JobFolder> FindJob(const std::string& name);

// control::DescribeJob(); where no coordinator lives and the job has not ended, "coordinator" says
// what to do.
absl::StatusOr<control::Json> DescribeJobOf(const control::JobFolder& folder);

// One request to the living coordinator; FAILED_PRECONDITION when there is none.
absl::StatusOr<control::Json> AskCoordinator(const control::JobFolder& folder,
                                             const std::string& method, const std::string& path,
                                             const control::Json& body);

// For flags and arguments that name a job: a path is wrong use.
std::string JobNameError(const std::string& name);  // "": it may be one

// The muster binary that runs.
absl::StatusOr<std::string> OwnProgram();

}  // namespace muster::cli
