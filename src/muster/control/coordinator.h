// Coordinator: one job's decisions turned into deeds. It owns the spec, the status and what agents
// said; Reconcile decides, the journal remembers before the launcher acts, agents are told.
//
// Deterministic: time, launcher and journal are given; threads and HTTP are in service.h. One owner
// thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/clock.h"
#include "muster/control/journal.h"
#include "muster/control/launcher.h"
#include "muster/control/protocol.h"
#include "muster/job/pod_template.h"
#include "muster/job/reconcile.h"
#include "muster/job/tf_config.h"

namespace muster::control {

struct CoordinatorOptions {
  double lease_seconds = 10;       // an agent or a coordinator silent for so long is given up
  double rendezvous_seconds = 60;  // for all agents of a cluster to report
  double grace_seconds = 10;       // from SIGTERM to SIGKILL
  job::TfConfigOptions tf_config = {};
  std::string working_directory = {};  // of tasks whose template names none
  std::string task_folders = {};       // where each task has its own, by its name; "": nowhere
};

class Coordinator {
 public:
  struct Environment {  // all outlive the coordinator
    Journal* journal = nullptr;
    Launcher* launcher = nullptr;
    const Clock* clock = nullptr;
    std::string clock_id = {};  // where the clock's monotonic time counts: a boot of the machine
  };

  // A new job. INVALID_ARGUMENT when a task's template gives no process. Nothing is done or written
  // before the first Pass.
  static absl::StatusOr<std::unique_ptr<Coordinator>> New(const job::JobSpec& spec,
                                                          const CoordinatorOptions& options,
                                                          const Environment& environment);
  // The job of a journal, where its last coordinator left it; agents that live are adopted.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Resume(const Environment& environment);

  // Writes down what is known now. A new job does so before anything else, and after SetNote().
  absl::Status Write() { return WriteDown(status_); }

  // Observes, decides, writes down, acts. Returns the seconds after which it must be called again,
  // whatever happens. After an error (the journal cannot be written) nothing was done, but that the
  // tasks of a cancelled job were told to stop: call again.
  absl::StatusOr<double> Pass();

  // What an agent says; what it is to do is OrdersFor(). True: a Pass should follow at once.
  bool Take(const AgentReport& report);
  AgentOrders OrdersFor(job::TaskId task, int64_t incarnation) const;
  // Theirs, without making them.
  int64_t OrdersVersion(job::TaskId task, int64_t incarnation) const;

  // Ends the job: `why` is its reason ("stopped by muster stop").
  void Cancel(const std::string& why) { cancelled_ = why; }

  // Suspended: all tasks end, and wait to be started again when it is not any more.
  // FAILED_PRECONDITION for a job that is ending; errors of the journal, after which nothing has
  // changed.
  absl::Status SetSuspended(bool suspended);

  // Nothing is left to do: the job has ended and no task runs.
  bool finished() const;
  const job::JobSpec& spec() const { return spec_; }
  const CoordinatorOptions& options() const { return options_; }
  const job::JobStatus& status() const { return status_; }
  // A member of the journal's state that belongs to others (the service's address).
  void SetNote(const char* name, const std::string& value) { notes_[name] = value; }

  // For people and programs: see DescribeJob().
  Json Describe() const;

 private:
  using Key = std::pair<job::TaskId, int64_t>;
  // What is known of one incarnation.
  struct Agent {
    std::optional<AgentReport> report;
    double last_heard = 0;           // monotonic seconds, as all times here
    std::optional<double> asked_at;  // its first Start
    std::optional<double> stop_at;   // its first Stop
    std::string stop_reason;
    bool diagnose = false;
    std::string given_up;  // why it was killed: what ends it is told by this
    bool killed = false;
    bool end_taken = false;
    std::optional<StartOrder> start;
    bool adopted = false;  // of an earlier coordinator: it runs and has yet to report
    int64_t version = 0;
  };

  Coordinator(job::JobSpec spec, CoordinatorOptions options, Environment environment)
      : spec_(std::move(spec)),
        options_(std::move(options)),
        environment_(std::move(environment)) {}
  absl::Status ReadTemplates();
  Agent& AgentOf(job::TaskId task, int64_t incarnation);
  double now() const { return static_cast<double>(environment_.clock->MonotonicNanos()) * 1e-9; }

  job::Observed Observe();
  job::TaskObservation Merge(const job::TaskObservation& seen) const;
  absl::Status WriteDown(const job::JobStatus& status);
  Json State(const job::JobStatus& status) const;
  void Act(const std::vector<job::Action>& actions);
  void StartTask(const job::Action& action);
  const Agent* CurrentAgent(job::TaskId task, int64_t incarnation) const;
  void StopTask(const job::Action& action);
  void StopTasks(const std::vector<job::Action>& actions);
  void ForgetAgents();
  void KeepLastWords(const job::JobStatus& status);
  void KeepLastSteps();
  void TakeEnds();
  double CheckLeases();
  void Kill(const Key& key, Agent& agent, const std::string& why) const;

  // coordinator_rendezvous.cc
  void TakeAddress(const AgentReport& report);
  bool IsMissing(job::TaskId id) const;
  std::vector<job::TaskId> Missing() const;
  // Whether `task` starts only when it is known where `other` is.
  bool Needs(job::TaskId task, job::TaskId other) const;
  std::string DescribeMeeting(const std::vector<job::TaskId>& missing) const;
  void GiveStarts();
  absl::StatusOr<StartOrder> StartOrderFor(job::TaskId task, int64_t incarnation) const;
  double CheckRendezvous();

  job::JobSpec spec_;
  const CoordinatorOptions options_;
  const Environment environment_;
  std::map<job::TaskType, job::Process> processes_;
  job::JobStatus status_;
  std::map<Key, Agent> agents_;
  job::Cluster addresses_;  // the last of each task
  using Texts = std::map<std::string, std::vector<std::string>>;
  Texts last_lines_, diagnoses_;  // of failures, by "worker-0.3"
  // By task, of its last incarnation that has ended: "step" and "counts".
  Json last_steps_ = Json::object();
  std::map<std::string, std::string> notes_;
  // Counts coordinators of this job, so that versions of orders grow from one to the next.
  int64_t generation_ = 0;
  std::string cancelled_;
  std::string waiting_for_;
};

// The job of a journal for people and programs, also when no coordinator runs: name, phase,
// message, tasks, failures with their last lines, TFJob's own status.
Json DescribeJob(const job::JobSpec& spec, const job::JobStatus& status, const Json& state);

// The spec of a journal's state.
absl::StatusOr<job::JobSpec> SpecOfState(const Json& state);

std::string IncarnationName(job::TaskId task, int64_t incarnation);  // "worker-0.3"

}  // namespace muster::control
