// Agent: takes care of one incarnation of one task on its machine. It marks itself as there, holds
// a port, reports to the coordinator, starts the task when it is told with what, reports how that
// goes, stops it when told, or when the coordinator was silent for a lease, and leaves the end in
// writing (incarnation.h). It decides nothing about other tasks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/control/incarnation.h"
#include "muster/control/job_folder.h"

namespace muster::control {

struct AgentOptions {
  JobFolder folder = {};
  IncarnationId id = {};
  std::string coordinator_url = {};
  std::string host = "127.0.0.1";  // where other tasks reach this one
  int port = 0;                    // wished; 0: any
  bool port_required = false;
  std::vector<int> cpus = {};            // the cores of the task; empty: all
  std::optional<std::string> gpus = {};  // its CUDA_VISIBLE_DEVICES; none: as inherited
  double lease_seconds = 10;             // until the coordinator says another
};

// Until the task has ended and that is reported. On the thread that lives as long as the process:
// the task dies with it. An error is the agent's own; what went wrong with the task is in the
// reports.
absl::Status RunAgent(const AgentOptions& options);

}  // namespace muster::control
