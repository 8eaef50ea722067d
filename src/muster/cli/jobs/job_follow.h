// A job in the foreground: what its tasks write, their progress, and how it ends.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/cli/jobs/log_follower.h"
#include "muster/cli/jobs/task_board.h"
#include "muster/control/job_place.h"

namespace muster::cli {

// The block of the job's tasks, where stderr is a terminal and the job has several; else null.
std::unique_ptr<TaskBoard> MakeBoard(size_t tasks, const Clock& clock);

// What the tasks write, without what the block shows, if there is one. A line among others on a
// terminal is written where the block was.
LogFollower::Options MakeLogOptions(std::vector<job::TaskId> tasks, std::FILE* out,
                                    TaskBoard* board);

std::vector<job::TaskId> ListTasks(const job::JobSpec& spec);

// Says how a job of this description has ended. ABORTED if it failed; the message says why.
absl::Status ReportEnd(const formats::Json& job);

// Prints what the tasks of a job elsewhere write to `out`, and tells what happens to them, until
// the job has ended: the result is ReportEnd()'s. After Ctrl-C the job continues, and the result is
// CANCELLED, with what to do.
absl::Status FollowElsewhere(control::JobPlace& place, const std::string& name,
                             const std::vector<job::TaskId>& tasks, std::FILE* out);

// The same for the job of that name, with what can be done next.
absl::Status FollowByName(const std::string& name, const job::JobSpec& spec, std::FILE* out);

}  // namespace muster::cli
