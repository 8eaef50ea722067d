// Removes what is left of a job that has ended: for `muster rm`, and when its
// ttlSecondsAfterFinished has passed.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/control/job_folder.h"

namespace muster::launch::local {

// Removes the job's record, logs and staged files. Links are removed, never their targets. A work
// folder that holds files which were not staged is kept, unless `with_work`; its path is returned,
// or "" if nothing is left. FAILED_PRECONDITION if a process of the job is running.
absl::StatusOr<std::string> RemoveJob(const control::JobFolder& folder, bool with_work);

// Whether an agent of the job is running.
bool AnyAgentLives(const control::JobFolder& folder);

// Removes the job if it has ended and its time to live has passed at `now` (wall seconds). True: it
// has been removed. `kept` is set to what RemoveJob returns.
absl::StatusOr<bool> RemoveIfExpired(const control::JobFolder& folder, double now,
                                     std::string* kept);

}  // namespace muster::launch::local
