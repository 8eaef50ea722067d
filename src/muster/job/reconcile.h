// Reconcile: the one place where it is decided what happens to the tasks of a job. Pure: the same
// arguments give the same result, nothing is read and nothing is done. Launchers observe and act.
//
// Behaviour is TFJob v1's (kubeflow/training-operator 1.9) with its known faults mended;
// docs/job.md lists the differences.
//
// What a launcher promises:
//   - Start and Stop are given again until they show; both are idempotent by (task, incarnation).
//     A Start that comes after a Stop of the same incarnation does nothing.
//   - An incarnation that was started or stopped is reported until another one of that task is
//     started: kEnded or kGone only when it certainly does not run and never will.
//   - Observations may be late, repeated, out of order, or missing: what is not reported is not
//     known, which never means that it has ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/job/job_spec.h"
#include "muster/job/job_status.h"

namespace muster::job {

struct TaskObservation {
  enum class Phase {
    kStarting,
    kRunning,
    kEnded,  // the process has ended by itself or was stopped: `end` says how
    kGone,   // it does not run and never will; how it ended is not known
  };
  TaskId id = {};
  int64_t incarnation = 0;
  Phase phase = Phase::kRunning;
  TaskEnd end = {};           // kEnded; `at` is not read
  int restarts_in_place = 0;  // by the launcher itself
  double idle_seconds = 0;    // kRunning: since its last sign of life
};

struct Observed {
  std::vector<TaskObservation> tasks;
  std::string cancelled = {};  // somebody asked to stop the job: why, and by whom
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
  bool hanging = false;     // kStop: what it hangs in is worth a look before
  friend bool operator==(const Action&, const Action&) = default;
};

struct Reconciled {
  JobStatus status;
  std::vector<Action> actions;
  double wake_after = 0;    // seconds until Reconcile must be called again, whatever is observed
  std::string waiting_for;  // what this job waits for, for people
};

Reconciled Reconcile(const JobSpec& spec, const JobStatus& status, const Observed& observed,
                     const Now& now);

}  // namespace muster::job
