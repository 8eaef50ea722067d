// The parts of Reconcile: one pass over one job. task_ends.cc takes in what was observed and
// decides about ends; job_end.cc about success, failure and what follows; reconcile.cc puts them in
// order.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/job/reconcile.h"

namespace muster::job {

class Reconciler {
 public:
  Reconciler(const JobSpec& spec, const JobStatus& status, Now now)
      : spec_(spec), now_(std::move(now)) {
    result_.status = status;
  }

  Reconciled Run(const Observed& observed) &&;

 private:
  JobStatus& status() { return result_.status; }
  double clock() const { return result_.status.clock; }

  // reconcile.cc
  RestartPolicy PolicyOf(TaskType type) const;
  void AdvanceClock();
  void MatchTasks();
  void ForgetTasks();
  void Suspend();
  void StartWaiting();
  void GiveActions(const Observed& observed);
  void UpdateRunning();
  void WakeAt(double clock, const std::string& why);
  void ScheduleWake();
  // Sets the condition to `is_true`; the same status and reason change nothing.
  void SetCondition(std::string_view type, bool is_true, std::string_view reason,
                    const std::string& message);
  void RemoveCondition(std::string_view type);
  bool IsTrue(std::string_view type) const;

  // task_ends.cc
  void TakeIn(const Observed& observed);
  void TakeEnd(TaskId id, TaskStatus& task, const TaskEnd& end);
  void TakeIdle(TaskId id, TaskStatus& task, double idle_seconds);
  void RecordFailure(TaskId id, const TaskStatus& task, const TaskEnd& end);
  FailureRule::Action DecideFailure(TaskId id, const TaskEnd& end) const;
  void RestartTask(TaskId id, TaskStatus& task, const std::string& why);
  void GiveUp(TaskStatus& task);
  void RestartGang(TaskId id, const std::string& why);
  bool SpendRestart(const std::string& who, std::vector<double>* recent, int limit);
  // `recent` is cleared of what lies before the budget's window.
  bool IsSpent(std::vector<double>* recent, int limit) const;
  // Whether the job goes on when this worker, which has failed, is not started again.
  bool CanDoWithout(TaskId id) const;
  double Backoff(size_t restarts_before) const;
  void CheckBackoffLimit();

  // job_end.cc
  void Stop(TaskStatus& task, const std::string& reason, bool restart_after = false);
  void Fail(const std::string& message);
  // Fails the job and stops every task, whatever cleanPodPolicy says.
  void FailAndStop(const std::string& message);
  void CheckCancelled(const Observed& observed);
  void CheckDeadline();
  void CheckSuccess();
  void Succeed(const std::string& message);
  void Finish();
  void EndFailing();
  void ExpireJob();
  bool AnyLive() const;

  const JobSpec& spec_;
  const Now now_;
  Reconciled result_;
  double wake_ = 0;  // the job's clock
};

}  // namespace muster::job
