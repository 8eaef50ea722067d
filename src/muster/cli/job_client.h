// What the verbs about a job ask: its coordinator where one lives, else its journal.
#pragma once

#include <string>

#include "muster/control/job_folder.h"
#include "muster/formats/json_fields.h"

namespace muster::cli {

// The job of that name under $MUSTER_HOME.
absl::StatusOr<control::JobFolder> FindJob(const std::string& name);

// control::DescribeJob(); where no coordinator answers and the job has not ended, its member
// "coordinator" says why and what to do.
absl::StatusOr<formats::Json> DescribeJobOf(const control::JobFolder& folder);

// What its journal says.
absl::StatusOr<formats::Json> StateOf(const control::JobFolder& folder);

// It has succeeded or failed.
bool HasEnded(const formats::Json& job);

// Whether a coordinator lives, or is about to be started again.
bool IsCaredFor(const control::JobFolder& folder);

// One request to the living coordinator; FAILED_PRECONDITION when there is none.
absl::StatusOr<formats::Json> AskCoordinator(const control::JobFolder& folder,
                                             const std::string& method, const std::string& path,
                                             const formats::Json& body);

// The same for a request that must arrive: while the coordinator is being started (again), it is
// asked until it answers, for some seconds at most.
absl::StatusOr<formats::Json> AskPatiently(const control::JobFolder& folder,
                                           const std::string& method, const std::string& path,
                                           const formats::Json& body);

// Waits until the processes that run the job (coordinator, supervisor) have ended, or for so many
// seconds, or for a signal. True: they have.
bool WaitForEnd(const control::JobFolder& folder, double seconds);

// For flags and arguments that name a job: a path is wrong use.
std::string JobNameError(const std::string& name);  // "": it may be one

// The muster binary that runs.
absl::StatusOr<std::string> OwnProgram();

}  // namespace muster::cli
