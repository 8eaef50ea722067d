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
#include "muster/io/file_system.h"

namespace muster::control {

// What the agent reports for a task that was ordered to pause.
constexpr char kPausedText[] = "is paused";

// How an agent ends when it no longer hears from its coordinator: the interval at which it checks
// its lease, and the time that it gives its task from SIGTERM to SIGKILL, in seconds.
// GoneAfterSeconds() (launcher.h) depends on both.
constexpr double kAgentLookSeconds = 1;
constexpr double kLostGraceSeconds = 3;

struct AgentOptions {
  JobFolder folder = {};
  // True: the folder is a bundle on the task's machine, not the job's own folder beside its
  // coordinator. A bundle holds token, data_key and, with TLS, ca.pem and the machine's server and
  // client certificates with their keys; the agent writes to agents/ and logs/. A relative working
  // directory is below the bundle.
  bool bundle = false;
  IncarnationId id = {};
  std::string coordinator_url = {};
  // A file with the coordinator's URL, on any file system. It is read again while the coordinator
  // is silent, since the coordinator may have moved. "": it never moves.
  std::string find_coordinator = {};
  std::string host = "127.0.0.1";  // where other tasks reach this one
  int port = 0;                    // preferred; 0: any
  bool port_required = false;
  std::vector<int> cpus = {};            // the cores of the task; empty: all
  std::optional<std::string> gpus = {};  // its CUDA_VISIBLE_DEVICES; none: as inherited
  double lease_seconds = 10;             // used until the coordinator sends another
  std::string slot = {};                 // AgentReport::slot
  // The bundle has no certificates for this machine: the agent asks the coordinator for some.
  bool fetches_certificates = false;
  bool also_stdout = false;  // what the task writes goes to this process's stdout as well
  // Through which an evaluator's model folder is read; it must outlive the agent. Null: the file
  // systems of this machine.
  io::FileSystem* files = nullptr;
};

// Returns once the task has ended and its end is reported. Call it on a thread that lives as long
// as the process, since the task is killed when that thread ends. An error is the agent's own;
// failures of the task are in the reports.
absl::Status RunAgent(const AgentOptions& options);

// Ends the processes that an agent, after its own end, left running on this machine.
absl::Status SweepAgent(const JobFolder& folder, const IncarnationId& id);

}  // namespace muster::control
