// Reach: the process on this machine for one task on another machine. It holds the incarnation's
// mark, runs the agent there over one ssh connection, writes the task's output to its log here and,
// when that is certain, the task's end beside the mark (control/incarnation.h). When this process
// ends, so does the connection, and the agent with all that belongs to it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/control/incarnation.h"
#include "muster/control/job_folder.h"

namespace muster::launch::ssh {

struct ReachOptions {
  control::JobFolder folder = {};
  control::IncarnationId id = {};
  size_t host = 0;  // its number in hosts.json
  int coordinator_port = 0;
  double lease_seconds = 10;
  int port = 0;  // as in AgentOptions
  bool port_required = false;
  int gpus = 0;  // that the task gets, from first_gpu on
  int first_gpu = 0;
};

// How the detail of an end begins if the host was never reached: the task has not run.
inline constexpr char kCannotReach[] = "cannot reach ";

// Returns when the connection has ended. Call it on a thread that lives as long as the process.
// After an error, and when ssh lost the host, no end is written: the agent may still run.
absl::Status Reach(const ReachOptions& options);

}  // namespace muster::launch::ssh
