// Coordinator: carries out the decisions for one job. It owns the spec, the status and the agents'
// reports. Reconcile decides, the journal records the decision before the launcher acts on it, and
// agents get their orders.
//
// It is deterministic: time, launcher and journal are given to it; threads and HTTP are in
// service.h. One owner thread.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/clock.h"
#include "muster/control/gang_wait.h"
#include "muster/control/journal.h"
#include "muster/control/launcher.h"
#include "muster/control/protocol.h"
#include "muster/job/pod_template.h"
#include "muster/job/reconcile.h"
#include "muster/job/tf_config.h"

namespace muster::control {

struct CoordinatorOptions {
  double lease_seconds = 10;       // an agent or a coordinator silent this long is given up
  double rendezvous_seconds = 60;  // for all agents of a cluster to report; 0: unlimited
  double grace_seconds = 10;       // from SIGTERM to SIGKILL
  // The time after which tasks that have processes give them back when others of the job get none
  // (gang_wait.h); 0: they keep them.
  double gang_seconds = 0;
  job::TfConfigOptions tf_config = {};
  std::string working_directory = {};  // of tasks whose template names none
  std::string task_folders = {};       // the parent of the tasks' own folders, by name; "": none
  bool tony_environment = false;       // TonY's variables beside TF_CONFIG (job/tony_environment.h)
};

class Coordinator {
 public:
  struct Environment {  // all must outlive the coordinator
    Journal* journal = nullptr;
    Launcher* launcher = nullptr;
    const Clock* clock = nullptr;
    std::string clock_id = {};  // the scope of monotonic time: a boot of the machine
  };

  // A new job. INVALID_ARGUMENT when a task's template gives no process. Nothing is done or written
  // before the first Pass.
  static absl::StatusOr<std::unique_ptr<Coordinator>> New(const job::JobSpec& spec,
                                                          const CoordinatorOptions& options,
                                                          const Environment& environment);
  // Continues the job of a journal where its last coordinator left it; running agents are adopted.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Resume(const Environment& environment);

  // Writes the current state to the journal, which Pass() does, too: for a job that somebody else
  // will run.
  absl::Status Write() { return WriteDown(status_); }

  // Observes, decides, records the decision in the journal, acts. Returns the seconds after which
  // it must be called again at the latest. After an error (the journal cannot be written) nothing
  // was done, except that the tasks of a cancelled job were told to stop: call again.
  absl::StatusOr<double> Pass();

  // Whether the report is from the agent that runs its incarnation. Do not Take() any other.
  Admission Admits(const AgentReport& report) const {
    return environment_.launcher->Admits(report.task, report.incarnation, report.slot,
                                         report.state != AgentReport::State::kWaiting);
  }
  // Takes an agent's report; the answer is OrdersFor(). Returns true if a Pass should follow at
  // once.
  bool Take(const AgentReport& report);
  AgentOrders OrdersFor(job::TaskId task, int64_t incarnation) const;
  // Notes that the incarnation has been answered, or may be answered until `seconds` from now: its
  // lease counts from then. It must be called before the answer is sent.
  void NoteAnswer(job::TaskId task, int64_t incarnation, double seconds);
  // The version of the result of OrdersFor(), without building it.
  int64_t OrdersVersion(job::TaskId task, int64_t incarnation) const;

  // Ends the job: `why` is its reason ("stopped by muster stop").
  void Cancel(const std::string& why) { cancelled_ = why; }

  // While suspended, all tasks are ended; they are started again when the job is resumed.
  // FAILED_PRECONDITION for a job that is ending. After an error of the journal nothing has
  // changed.
  absl::Status SetSuspended(bool suspended);

  // Pauses the job's tasks while this process is stopped as well (Ctrl-Z); false ends the pause.
  // Time in which the job is paused, or in which Pass was not called when due, does not count as
  // silence of the agents: a coordinator that was stopped together with its agents loses none of
  // them.
  void SetPaused(bool paused);

  // Whether nothing is left to do: the job has ended and no task runs.
  bool finished() const;
  const job::JobSpec& spec() const { return spec_; }
  const CoordinatorOptions& options() const { return options_; }
  const job::JobStatus& status() const { return status_; }
  // Sets a member of the journal's state that others use, such as the service's address.
  void SetNote(const char* name, const std::string& value) {
    notes_[name] = value;
    is_written_ = false;
  }

  // For people and programs: see DescribeJob().
  Json Describe() const;

 private:
  using Key = std::pair<job::TaskId, int64_t>;
  // What is known about one incarnation.
  struct Agent {
    std::optional<AgentReport> report;
    double last_heard = 0;              // monotonic seconds, as all times here
    std::optional<double> answered_at;  // the last answer; none: it has no order to start
    std::optional<double> asked_at;     // its first Start
    std::optional<double> stop_at;      // its first Stop
    std::string stop_reason;
    bool diagnose = false;
    std::string given_up;  // why it was killed; reported as the reason of its end
    bool killed = false;
    bool end_taken = false;
    std::optional<StartOrder> start;
    bool adopted = false;  // started by an earlier coordinator; runs, has not reported yet
    int64_t version = 0;
  };

  Coordinator(job::JobSpec spec, CoordinatorOptions options, Environment environment)
      : spec_(std::move(spec)), options_(std::move(options)), environment_(std::move(environment)) {
    if (environment_.launcher == nullptr) return;
    traits_ = environment_.launcher->traits();
    options_.lease_seconds = std::max(options_.lease_seconds, traits_.lease_seconds);
  }
  absl::Status ReadTemplates();
  Agent& GetAgent(job::TaskId task, int64_t incarnation);
  double now() const { return static_cast<double>(environment_.clock->MonotonicNanos()) * 1e-9; }

  absl::StatusOr<double> PassOnce();
  job::Observed Observe();
  job::TaskObservation Merge(const job::TaskObservation& seen) const;
  void Act(const std::vector<job::Action>& actions);
  void StartTask(const job::Action& action);
  const Agent* CurrentAgent(job::TaskId task, int64_t incarnation) const;
  void StopTask(const job::Action& action);
  void StopTasks(const std::vector<job::Action>& actions);
  void ForgetAgents();
  void KeepLastWords(const job::JobStatus& status);
  void KeepLastSteps();
  bool RecordLoss(const AgentReport& report);
  void RecordEnds();
  double CheckLeases();
  // Whether a killed agent has ended by this clock, if the launcher does not observe ends.
  bool IsGone(const Agent& agent) const;
  bool IsLive(const Key& key) const;  // by the status
  double SecondsUntilGone(const Agent& agent) const;
  void Forgive(double seconds);
  void Kill(const Key& key, Agent& agent, const std::string& why) const;

  // coordinator_state.cc
  absl::Status WriteDown(const job::JobStatus& status);
  Json State(const job::JobStatus& status) const;

  // coordinator_room.cc
  std::optional<job::GiveBack> LookForRoom();
  job::GiveBack MakeGiveBack(const std::vector<job::TaskId>& missing,
                             const std::vector<job::TaskId>& holders, double waited);

  // coordinator_rendezvous.cc
  void RecordAddress(const AgentReport& report);
  bool IsMissing(job::TaskId id) const;
  std::vector<job::TaskId> Missing() const;
  // Whether `task` starts only once the address of `other` is known.
  bool Needs(job::TaskId task, job::TaskId other) const;
  // Seconds until a job of MIN:MAX workers need not wait any longer for this one, which the
  // platform has given no process; infinity for any other task.
  double SecondsUntilDispensable(job::TaskId id) const;
  // Leaves out of `missing` the workers without which the others may start, where enough of them
  // are there; returns the seconds until the next one may be left out.
  double LeaveOutDispensable(std::vector<job::TaskId>* missing) const;
  std::string DescribeMeeting(const std::vector<job::TaskId>& missing) const;
  // Returns the seconds until tasks that wait may start without others.
  double GiveStarts();
  int CountSessions() const;
  absl::StatusOr<StartOrder> StartOrderFor(job::TaskId task, int64_t incarnation) const;
  double CheckRendezvous();

  job::JobSpec spec_;
  CoordinatorOptions options_;
  const Environment environment_;
  LauncherTraits traits_;
  std::map<job::TaskType, job::Process> processes_;
  job::JobStatus status_;
  std::map<Key, Agent> agents_;
  job::Cluster addresses_;  // the latest of each task
  using Texts = std::map<std::string, std::vector<std::string>>;
  Texts last_lines_, diagnoses_;  // of failures, by "worker-0.3"
  // By task: "step" and "counts" of its last incarnation that has ended.
  Json last_steps_ = Json::object();
  // Checkpoints that vanished while a task was restarted: "task", "incarnation", "step".
  Json lost_checkpoints_ = Json::array();
  std::map<std::string, std::string> notes_;
  bool is_written_ = false;  // whether the journal has all but the time, as this coordinator has it
  // Counts the coordinators of this job, so that order versions grow from one to the next.
  int64_t generation_ = 0;
  std::string cancelled_;
  std::string waiting_for_;
  bool paused_ = false;
  std::optional<double> paused_at_, wake_at_;  // monotonic seconds
  double passed_at_ = 0;                       // monotonic seconds of the last pass
  std::optional<GangWait> gang_wait_;          // from the first pass on
};

// Describes the job of a journal for people and programs, also when no coordinator runs: name,
// phase, message, tasks, failures with their last lines, TFJob's own status.
Json DescribeJob(const job::JobSpec& spec, const job::JobStatus& status, const Json& state);

// The spec of a journal's state.
absl::StatusOr<job::JobSpec> ParseJobSpec(const Json& state);

std::string IncarnationName(job::TaskId task, int64_t incarnation);  // "worker-0.3"

}  // namespace muster::control
