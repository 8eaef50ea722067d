// Launcher: starts and ends the agents of a job's tasks, with one implementation per platform
// (launch/local/). It observes and acts; it decides nothing.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/job/job_spec.h"
#include "muster/job/reconcile.h"

namespace muster::control {

struct StartRequest {
  job::TaskId task = {};
  int64_t incarnation = 0;
  int port = 0;                // of the task's last incarnation; 0: any
  bool port_required = false;  // other tasks know this task by its port
  double lease_seconds = 10;   // without an answer from the coordinator
};

// One owner thread. Every call is idempotent by (task, incarnation), also across a restart of the
// coordinator, and returns soon.
class Launcher {
 public:
  virtual ~Launcher() = default;
  // Starts an agent for the incarnation, unless it ever had one or was killed. A failure is
  // reported by Observe() (kEnded with a detail) and not returned.
  virtual void Start(const StartRequest& request) = 0;
  // Ends agent and task at once, whatever they are doing. For an orderly stop, order the agent to.
  virtual void Kill(job::TaskId task, int64_t incarnation) = 0;
  // For each incarnation that was started or killed and not yet forgotten: kStarting while its
  // agent runs, kEnded with the end that the agent wrote down, else kGone.
  virtual std::vector<job::TaskObservation> Observe() = 0;
};

}  // namespace muster::control
