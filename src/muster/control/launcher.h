// Launcher: starts and ends the agents of a job's tasks, with one implementation per platform
// (launch/local/). It observes and acts; it decides nothing.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/job/job_spec.h"
#include "muster/job/pod_template.h"
#include "muster/job/reconcile.h"

namespace muster::control {

// What a platform can be relied on for.
struct LauncherTraits {
  // An incarnation that does not run any more is observed as kEnded or kGone for certain, whatever
  // ended it. Where this is false (a machine that cannot be reached may continue), an incarnation
  // that is silent is gone by the coordinator's clock: see GoneAfterSeconds().
  bool sees_ends = true;
  bool restarts_in_place =
      false;                  // the platform itself starts an ended task again, as kubelet does
  bool stable_names = false;  // a task that is started elsewhere keeps its address
  // The least lease that the platform bears, such as the time that it takes to start a coordinator
  // again; 0: any.
  double lease_seconds = 0;
};

// Seconds after the coordinator last answered an agent by which that agent and its task have ended
// by themselves. The agent counts its lease from the report that was answered, looks once a second,
// gives the task some seconds, and its clock may be slower than the coordinator's. It does not hold
// for a machine that was suspended: there the task lives until the agent's next report is answered,
// or for another lease.
double GoneAfterSeconds(double lease_seconds);

// Whether an agent that reports is the one of its incarnation.
enum class Admission {
  kYes,
  kNotYet,  // the platform has not said enough: the agent is to ask again
  kNo,      // another one is, or the incarnation has ended: it must end
};

struct StartRequest {
  job::TaskId task = {};
  int64_t incarnation = 0;
  int port = 0;                // of the task's last incarnation; 0: any
  bool port_required = false;  // other tasks know this task by its port
  double lease_seconds = 10;   // without an answer from the coordinator
  job::Process process = {};   // what it runs and what that needs: cpus, memory, gpus
};

// One owner thread. Every call is idempotent by (task, incarnation), also across a restart of the
// coordinator, and returns soon.
class Launcher {
 public:
  virtual ~Launcher() = default;
  // The same at all times.
  virtual LauncherTraits traits() const { return {}; }
  // Starts an agent for the incarnation, unless it ever had one or was killed. A failure is
  // reported by Observe() (kEnded with a detail) and not returned.
  virtual void Start(const StartRequest& request) = 0;
  // Ends agent and task at once, whatever they are doing. For an orderly stop, order the agent to.
  virtual void Kill(job::TaskId task, int64_t incarnation) = 0;
  // Whether the agent that reports from a slot (AgentReport::slot) is the one of its incarnation.
  // `runs`: it says that its task has been started. An agent that is not admitted gets no order to
  // start, and nothing that it says is taken. A launcher whose platform may start an incarnation
  // twice answers kYes for one of the two at most; for others there is nothing to ask.
  virtual Admission Admits(job::TaskId /*task*/, int64_t /*incarnation*/,
                           const std::string& /*slot*/, bool /*runs*/) {
    return Admission::kYes;
  }
  // The machine of an incarnation, for people: "host b"; "" where that goes without saying or is
  // not known.
  virtual std::string GetPlace(job::TaskId /*task*/, int64_t /*incarnation*/) const { return ""; }
  // After the job's end: waits, so many seconds at most, until nothing of it is left and all output
  // of its tasks is in its folder.
  virtual void Finish(double /*seconds*/) {}
  // For each incarnation that was started or killed and not yet forgotten: kStarting while its
  // agent runs or may run, kEnded with the end that the agent wrote down, else kGone.
  virtual std::vector<job::TaskObservation> Observe() = 0;
};

}  // namespace muster::control
