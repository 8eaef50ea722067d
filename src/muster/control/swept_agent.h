// An agent in a process that a platform gives and ends, such as a YARN container, where nobody else
// would end what a killed agent has left running: its task dies with it, but not what the task has
// started (process/process_tree.h).
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/control/incarnation.h"
#include "muster/control/job_folder.h"

namespace muster::control {

// Runs the agent, whose complete command is `agent`, as a child in this process's group, and
// returns its exit code, or 128 and the number of the signal that ended it, once nothing of its
// task runs. SIGTERM, SIGINT and SIGHUP end the agent, not this process. `sweeper` is the command
// that waits as WaitForAgentAndSweep() does; it runs in a session of its own, where signals to this
// process's group do not reach it, also when both this process and the agent are killed.
absl::StatusOr<int> RunSweptAgent(std::vector<std::string> agent, std::vector<std::string> sweeper);

// The descriptor that a sweeper inherits: at its end, the agent and who waits for it have ended.
inline constexpr int kSweeperFd = 3;

// Waits for the end of kSweeperFd, and then ends what the agent has left running.
absl::Status WaitForAgentAndSweep(const JobFolder& folder, const IncarnationId& id);

}  // namespace muster::control
