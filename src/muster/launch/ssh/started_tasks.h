// Where the last incarnation of each task was started, in the file started.json of the job's
// folder, so that a coordinator that is started again knows the hosts of tasks that have moved.
#pragma once

#include <cstdint>
#include <map>

#include "muster/base/status.h"
#include "muster/control/job_folder.h"
#include "muster/launch/ssh/host_choice.h"

namespace muster::launch::ssh {

struct StartedTask {
  int64_t incarnation = 0;
  TaskPlace place = {};
  bool stays = false;  // other tasks know it by its host
  friend bool operator==(const StartedTask&, const StartedTask&) = default;
};
using StartedTasks = std::map<job::TaskId, StartedTask>;

// Replaces the file as a whole and durably; it is readable by its owner alone. Errors are those of
// io::WriteFileAtomically. The job's one coordinator calls it, before it starts a task there.
absl::Status WriteStarted(const control::JobFolder& folder, const StartedTasks& tasks);
// Empty for a job of which nothing was started yet. INVALID_ARGUMENT for a file of another form.
// Any process may call it while the coordinator writes: it sees the old or the new state.
absl::StatusOr<StartedTasks> ReadStarted(const control::JobFolder& folder);

}  // namespace muster::launch::ssh
