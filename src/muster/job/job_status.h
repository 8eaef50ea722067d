// JobStatus: a job's state as Reconcile left it: plain data that a journal keeps. Conditions, their
// types and reasons are TFJob v1's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/job/job_spec.h"

namespace muster::job {

enum class TaskPhase {
  kWaiting,   // to be started at TaskStatus::not_before or later
  kStarting,  // Start was given; not seen running yet
  kRunning,
  kStopping,  // Stop was given
  kSucceeded,
  kFailed,
  kStopped,  // ended because Muster stopped it
};
std::string_view PhaseName(TaskPhase phase);

// How an incarnation ended.
// Exit codes of a task whose program is not there, or may not be executed, as shells give them.
inline constexpr int kNotExecutableCode = 126;
inline constexpr int kNoProgramCode = 127;

struct TaskEnd {
  int exit_code = -1;  // -1: not known
  int signal = 0;
  bool out_of_memory = false;
  bool lost = false;  // its machine or agent is gone
  // The platform ended it: an eviction, a preemption, a lost machine. The task is started again,
  // and that is not counted as a failure of its own is.
  bool disrupted = false;
  // "no sign of life for 10m"; "cannot start: ..." also beside the two exit codes above.
  std::string detail = {};
  std::string last_line = {};  // of its output; "" if not known
  double at = 0;               // the job's clock

  bool succeeded() const { return exit_code == 0 && signal == 0 && !lost && detail.empty(); }
  std::string Describe() const;  // "exit code 3", "killed by SIGKILL (out of memory)", ...
  friend bool operator==(const TaskEnd&, const TaskEnd&) = default;
};

struct TaskStatus {
  TaskPhase phase = TaskPhase::kWaiting;
  int64_t incarnation = 0;     // of the last Start; 0: none yet. Unique and growing in a job.
  double not_before = 0;       // kWaiting: the job's clock
  bool restart_after = false;  // kStopping: to be started again
  bool gang = false;           // waits until the whole gang has ended
  std::string stop_reason;     // kStopping and kStopped
  bool hanging = false;        // it is being or was stopped for lack of a sign of life
  bool cut_off = false;        // an evaluator that was stopped while it might have had work
  int restarts = 0;            // by us
  int disruptions = 0;         // restarts after TaskEnd::disrupted, which `restarts` leaves out
  int restarts_in_place = 0;   // by the launcher, of this incarnation
  std::vector<double> recent_restarts;  // by Muster, within the budget's window
  // Disruptions within that window, on the job's clock: their restarts have pauses, too.
  std::vector<double> recent_disruptions;
  std::optional<TaskEnd> last_end;
  // JobSpec::fail_fast: the task's last own failure while the job has made no progress.
  std::optional<TaskEnd> early_end;
  friend bool operator==(const TaskStatus&, const TaskStatus&) = default;

  bool live() const {
    return phase == TaskPhase::kStarting || phase == TaskPhase::kRunning ||
           phase == TaskPhase::kStopping;
  }
};

struct Condition {
  std::string type;  // Created, Running, Restarting, Succeeded, Failed, Suspended
  bool is_true = true;
  std::string reason, message;
  double last_update = 0, last_transition = 0;  // wall seconds
  friend bool operator==(const Condition&, const Condition&) = default;
};

struct Failure {
  TaskId task;
  int64_t incarnation = 0;
  TaskEnd end;
  bool follow_up = false;  // it ended by itself shortly after another task had failed
  friend bool operator==(const Failure&, const Failure&) = default;
};

enum class JobPhase { kActive, kSuspended, kFinishing, kSucceeded, kFailing, kFailed };
std::string_view PhaseName(JobPhase phase);

struct JobStatus {
  JobPhase phase = JobPhase::kActive;
  std::map<TaskId, TaskStatus> tasks;
  std::vector<Condition> conditions;
  std::vector<Failure> failures;  // the last 20, oldest first
  std::string failure_message;    // why the job failed
  int64_t next_incarnation = 1;
  std::vector<double> recent_restarts;     // of the whole job
  std::vector<double> recent_disruptions;  // that restarted the whole gang
  bool gang_restart = false;               // all are being stopped to be restarted
  bool delete_sent = false;
  int gave_back = 0;      // how often the job gave back its processes: it had too few
  std::string room_note;  // why it did so last; "": all its tasks have run since

  // The job's own clock, in seconds since it was first seen. It never goes back and does not jump
  // with the machine's wall clock.
  double clock = 0;
  double last_monotonic = 0, last_wall = 0;
  std::string clock_id;     // the scope of last_monotonic: another id has another origin
  double active_since = 0;  // the start, or the last resume
  double ended_at = 0;      // when success or failure was decided
  bool progressed = false;  // a task reported a step, or saved a checkpoint
  // When a task last ended by a signal, by the loss of its machine or the like; less than 0: never.
  double disrupted_at = -1;

  double start_time = 0, completion_time = 0;  // wall seconds, for people; 0: not yet

  bool ended() const { return phase == JobPhase::kSucceeded || phase == JobPhase::kFailed; }
  const Condition* FindCondition(std::string_view type) const;
  friend bool operator==(const JobStatus&, const JobStatus&) = default;
};

// Problems in a job that has succeeded, one phrase each: "worker-1 failed (exit code 3)".
std::vector<std::string> Shortfalls(const JobStatus& status);
// The shortfalls as the end of a sentence: ", although A and B"; "" for none.
std::string Although(const JobStatus& status);

// TFJob's status object: conditions, replicaStatuses, startTime, completionTime.
Json StatusJson(const JobSpec& spec, const JobStatus& status);

}  // namespace muster::job
