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

// The guarantees of a platform.
struct LauncherTraits {
  // True: an incarnation that does not run any more is observed as kEnded or kGone for certain,
  // whatever ended it. False (a machine that cannot be reached may continue): an incarnation that
  // is silent has ended by the coordinator's clock, see GoneAfterSeconds().
  bool sees_ends = true;
  bool restarts_in_place =
      false;                  // the platform itself starts an ended task again, as kubelet does
  bool stable_names = false;  // a task that is started elsewhere keeps its address
  // The shortest lease that the platform allows, such as the time that it takes to start a
  // coordinator again; 0: any.
  double lease_seconds = 0;
};

// Seconds after the coordinator last answered an agent by which that agent and its task have ended
// by themselves. The agent counts its lease from the report that was answered, checks it once a
// second, gives the task some seconds to end, and its clock may be slower than the coordinator's.
// The bound does not hold for a machine that was suspended: there the task lives until the agent's
// next report is answered, or for another lease.
double GoneAfterSeconds(double lease_seconds);

// Whether a reporting agent is the one that runs its incarnation.
enum class Admission {
  kYes,
  kNotYet,  // the platform has not reported enough yet: the agent must ask again
  kNo,      // another agent is, or the incarnation has ended: the agent must end
};

struct StartRequest {
  job::TaskId task = {};
  int64_t incarnation = 0;
  int port = 0;                // of the task's last incarnation; 0: any
  bool port_required = false;  // other tasks know this task by its port
  double lease_seconds = 10;   // the agent ends after this long without an answer
  job::Process process = {};   // what it runs and what that needs: cpus, memory, gpus
};

// One owner thread. Every call is idempotent by (task, incarnation), also across a restart of the
// coordinator, and returns soon.
class Launcher {
 public:
  virtual ~Launcher() = default;
  // The result never changes.
  virtual LauncherTraits traits() const { return {}; }
  // Starts an agent for the incarnation, unless it ever had one or was killed. A failure is
  // reported by Observe() (kEnded with a detail) and not returned.
  virtual void Start(const StartRequest& request) = 0;
  // Ends agent and task at once, whatever they are doing. For an orderly stop, order the agent to
  // stop (AgentOrders::stop).
  virtual void Kill(job::TaskId task, int64_t incarnation) = 0;
  // Whether the agent that reports from a slot (AgentReport::slot) is the one that runs its
  // incarnation. `runs`: the agent says that its task has been started. An agent that is not
  // admitted gets no order to start, and its reports are ignored. A launcher whose platform may
  // start an incarnation twice answers kYes for at most one of the two agents; other launchers
  // admit every agent.
  virtual Admission Admits(job::TaskId /*task*/, int64_t /*incarnation*/,
                           const std::string& /*slot*/, bool /*runs*/) {
    return Admission::kYes;
  }
  // The machine of an incarnation, for people: "host b"; "" if it is obvious or not known.
  virtual std::string GetPlace(job::TaskId /*task*/, int64_t /*incarnation*/) const { return ""; }
  // Whether the platform has not given a process to this incarnation, which was started, yet: it
  // may wait for room for any time.
  virtual bool LacksProcess(job::TaskId /*task*/, int64_t /*incarnation*/) const { return false; }
  // What the platform gives, for people: "container of YARN's queue root.default".
  virtual std::string DescribeProcess() const { return "process"; }
  // Called after the job's end. Waits, at most for this many seconds, until nothing of the job is
  // left and all output of its tasks is in its folder.
  virtual void Finish(double /*seconds*/) {}
  // For each incarnation that was started or killed and not yet forgotten: kStarting while its
  // agent runs or may run, kEnded with the end that the agent wrote, else kGone.
  virtual std::vector<job::TaskObservation> Observe() = 0;
};

}  // namespace muster::control
