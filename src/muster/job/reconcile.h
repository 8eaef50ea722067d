// Reconcile: the one place that decides what happens to the tasks of a job. It is a pure function:
// the same arguments give the same result, and it has no side effects. Launchers observe and act.
//
// Its behaviour is that of TFJob v1 (kubeflow/training-operator 1.9) with its known faults fixed;
// docs/job.md lists the differences.
//
// The contract with launchers:
//   - Start and Stop are repeated until observed; both are idempotent by (task, incarnation).
//     A Start that comes after a Stop of the same incarnation does nothing.
//   - An incarnation that was started or stopped is reported until another one of that task is
//     started: kEnded or kGone only when it certainly does not run and never will.
//   - Observations may be late, repeated, out of order, or missing. An incarnation that is not
//     reported is in an unknown state; that never means that it has ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/job/job_spec.h"
#include "muster/job/job_status.h"

namespace muster::job {

// What can be seen from outside of a running evaluator.
struct EvaluatorWork {
  // Whether it has evaluated the newest checkpoint of the model folder.
  enum class Newest { kUnknown, kNotEvaluated, kEvaluated } newest = Newest::kUnknown;
  double still_seconds = 0;  // since anything changed below the model folder
  double idle_seconds = 0;   // since it last showed activity: such a change, output, CPU use
  friend bool operator==(const EvaluatorWork&, const EvaluatorWork&) = default;
};

struct TaskObservation {
  enum class Phase {
    kStarting,
    kRunning,
    kEnded,  // the process has ended by itself or was stopped: `end` says how
    kGone,   // it does not run and never will; how it ended is unknown
  };
  TaskId id = {};
  int64_t incarnation = 0;
  Phase phase = Phase::kRunning;
  TaskEnd end = {};           // kEnded; `at` is not read
  int restarts_in_place = 0;  // by the launcher itself
  // How the run before the last of those restarts ended, if that is known; `at` is not read.
  std::optional<TaskEnd> end_in_place = {};
  double idle_seconds = 0;  // kRunning: since its last sign of life
  bool progressed = false;  // it reported a step, or a checkpoint was saved while it ran
  std::optional<EvaluatorWork> work = {};  // kRunning: of an evaluator
};

// That these tasks, of which others of the job lack processes, give back theirs: they stop, and all
// start again after a pause. No budget counts it, since none of them has failed.
struct GiveBack {
  std::vector<TaskId> tasks = {};
  std::string note = {};  // for people: JobStatus::room_note
  double pause_seconds = 0;
};

struct Observed {
  std::vector<TaskObservation> tasks;
  std::string cancelled = {};  // set when somebody asked to stop the job: why, and by whom
  std::optional<GiveBack> give_back = {};
};

struct Now {
  double wall = 0;            // seconds since the epoch; may jump
  double monotonic = 0;       // seconds that never go back...
  std::string clock_id = {};  // ...as long as this stays the same (a boot of a machine)
};

struct Action {
  enum class Kind { kStart, kStop, kDeleteJob };
  Kind kind = Kind::kStart;
  TaskId id = {};
  int64_t incarnation = 0;
  std::string reason = {};  // kStop: for logs
  bool hanging = false;     // kStop: diagnose what it hangs in before stopping it
  friend bool operator==(const Action&, const Action&) = default;
};

struct Reconciled {
  JobStatus status;
  std::vector<Action> actions;
  double wake_after = 0;    // seconds until Reconcile must be called again, at the latest
  std::string waiting_for;  // what this job waits for, for people
};

Reconciled Reconcile(const JobSpec& spec, const JobStatus& status, const Observed& observed,
                     const Now& now);

}  // namespace muster::job
