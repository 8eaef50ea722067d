// Launcher: what starts and ends the agents of a job's tasks, one member a place (launch/local/).
// It observes and acts; it decides nothing.
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
  bool port_required = false;  // others know the task by it
  double lease_seconds = 10;   // without a word of the coordinator
};

// One owner thread. Every call is idempotent by (task, incarnation), also across a restart of the
// coordinator, and returns soon.
class Launcher {
 public:
  virtual ~Launcher() = default;
  // An agent for the incarnation, unless there ever was one, or it was killed. A failure is
  // observed (kEnded with a detail) and not returned.
  virtual void Start(const StartRequest& request) = 0;
  // Ends agent and task at once, whatever they are doing. The orderly way is the agent's.
  virtual void Kill(job::TaskId task, int64_t incarnation) = 0;
  // Of each incarnation that was started or killed and not yet forgotten: kStarting while its agent
  // lives, kEnded with what the agent left in writing, else kGone.
  virtual std::vector<job::TaskObservation> Observe() = 0;
};

}  // namespace muster::control
