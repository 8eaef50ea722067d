// Agent: runs one incarnation of one task on its machine. It takes the incarnation's mark, holds a
// port, reports to the coordinator, starts the task when the coordinator sends its command, reports
// its state, stops it when told to or when the coordinator was silent for a lease, and writes down
// how the task ended (incarnation.h). It decides nothing about other tasks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/control/incarnation.h"
#include "muster/control/job_folder.h"

namespace muster::control {

// What it reports for a task that was ordered to pause.
constexpr char kPausedText[] = "is paused";

struct AgentOptions {
  JobFolder folder = {};
  IncarnationId id = {};
  std::string coordinator_url = {};
  std::string host = "127.0.0.1";  // where other tasks reach this one
  int port = 0;                    // preferred; 0: any
  bool port_required = false;
  std::vector<int> cpus = {};            // the cores of the task; empty: all
  std::optional<std::string> gpus = {};  // its CUDA_VISIBLE_DEVICES; none: as inherited
  double lease_seconds = 10;             // until the coordinator sends another
};

// Returns once the task has ended and its end is reported. Call it on a thread that lives as long
// as the process, since the task is killed when that thread ends. An error is the agent's own;
// failures of the task are in the reports.
absl::Status RunAgent(const AgentOptions& options);

}  // namespace muster::control
