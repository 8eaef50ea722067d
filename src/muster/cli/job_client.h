// How the verbs about a job query it: they ask its coordinator if one runs, else read its journal.
#pragma once

#include <string>

#include "muster/control/job_folder.h"
#include "muster/formats/json_fields.h"

namespace muster::cli {

// The job of that name under $MUSTER_HOME.
absl::StatusOr<control::JobFolder> FindJob(const std::string& name);

// The result of control::DescribeJob(). If no coordinator answers and the job has not ended, the
// member "coordinator" says why and what to do; "lost" is true if nothing of the job runs any more.
absl::StatusOr<formats::Json> DescribeJobOf(const control::JobFolder& folder);

// The state in the job's journal.
absl::StatusOr<formats::Json> StateOf(const control::JobFolder& folder);

// Whether the job has succeeded or failed.
bool HasEnded(const formats::Json& job);

// Whether the job's coordinator runs or is about to be restarted.
bool IsCaredFor(const control::JobFolder& folder);

// One request to the running coordinator; FAILED_PRECONDITION when there is none.
absl::StatusOr<formats::Json> AskCoordinator(const control::JobFolder& folder,
                                             const std::string& method, const std::string& path,
                                             const formats::Json& body);

// The same for a request that must arrive: while the coordinator is being started or restarted, the
// request is repeated until it answers, for some seconds at most.
absl::StatusOr<formats::Json> AskPatiently(const control::JobFolder& folder,
                                           const std::string& method, const std::string& path,
                                           const formats::Json& body);

// Waits until the processes that run the job (coordinator, supervisor) have ended, `seconds` have
// passed, or a signal arrives. True: they have ended.
bool WaitForEnd(const control::JobFolder& folder, double seconds);

// For flags and arguments that name a job; passing a path is wrong use.
std::string JobNameError(const std::string& name);  // "": the name is valid

// The path of the running muster binary.
absl::StatusOr<std::string> OwnProgram();

}  // namespace muster::cli
