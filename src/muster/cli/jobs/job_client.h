// Finds a job for the verbs about jobs: by its name in the jobs folder of this machine, wherever
// the job runs.
#pragma once

#include <memory>
#include <string>

#include "muster/cli/jobs/where_flags.h"
#include "muster/control/job_folder.h"
#include "muster/control/job_place.h"
#include "muster/control/place_record.h"
#include "muster/formats/json_fields.h"

namespace muster::cli {

// Returns the folder of the job of that name below $MUSTER_HOME.
absl::StatusOr<control::JobFolder> FindJob(const std::string& name);

// Opens the job itself, by the record in its folder. FAILED_PRECONDITION names a kind of place that
// this muster does not know, and those that it knows.
absl::StatusOr<std::unique_ptr<control::JobPlace>> OpenJob(const std::string& name);
// As OpenJob, for the job that `where` says where to find, if it says so.
absl::StatusOr<std::unique_ptr<control::JobPlace>> OpenJob(const std::string& name,
                                                           const WhereFlags& where);
absl::StatusOr<std::unique_ptr<control::JobPlace>> OpenJobIn(const control::JobFolder& folder);

// Whether the job runs, or ran, on this machine.
absl::StatusOr<bool> IsLocal(const control::JobFolder& folder);

// Whether the job has succeeded or failed; `job` is a result of JobPlace::Describe().
bool HasEnded(const formats::Json& job);

// Check flags and arguments that name a job; a path is wrong use.
std::string JobNameError(const std::string& name);  // "": the name is valid
// As JobNameError, for the name of a job that is about to start, whose rules are stricter.
std::string NewJobNameError(const std::string& name);
std::string NamespaceError(const std::string& name);  // of Kubernetes

// Returns the path of the running muster binary.
absl::StatusOr<std::string> OwnProgram();

}  // namespace muster::cli
