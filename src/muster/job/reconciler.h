// The parts of Reconcile: one pass over one job. task_ends.cc applies the observations and decides
// about ended tasks; task_restarts.cc starts them again; job_end.cc decides about success, failure
// and what follows; reconcile.cc calls them in order.
#pragma once

#include <map>
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
  RestartPolicy GetPolicy(TaskType type) const;
  void AdvanceClock();
  void MatchTasks();
  void ScaleUp(TaskStatus& task);
  void ForgetTasks();
  void Suspend();
  void StartWaiting();
  void GiveBackProcesses(const Observed& observed);
  void ForgetRoomNote();
  void GiveActions(const Observed& observed);
  void UpdateRunning();
  void WakeAt(double clock, const std::string& why);
  void ScheduleWake();
  // Sets the condition to `is_true`; does nothing if its status and reason are already the same.
  void SetCondition(std::string_view type, bool is_true, std::string_view reason,
                    const std::string& message);
  void RemoveCondition(std::string_view type);
  bool IsTrue(std::string_view type) const;
  void EndRunning();
  std::string FullName() const;  // "NAMESPACE/NAME"

  // task_ends.cc
  void RecordObserved(const Observed& observed);
  void RecordRestartsInPlace(const TaskObservation& seen, TaskStatus& task);
  void RecordEnd(TaskId id, TaskStatus& task, const TaskEnd& end);
  void RecordIdle(TaskId id, TaskStatus& task, double idle_seconds);
  void RecordFailure(TaskId id, const TaskStatus& task, const TaskEnd& end);
  // JobSpec::fail_fast: whether the task ended as it did before, so that it would do so the next
  // time, too.
  bool RepeatsItself(TaskId id, TaskStatus& task, const TaskEnd& end);
  FailureRule::Action DecideFailure(TaskId id, const TaskEnd& end) const;
  // Whether the job continues when this failed worker is not restarted.
  bool CanDoWithout(TaskId id) const;

  // task_restarts.cc
  // kFree: after a disruption. No budget counts it.
  enum class Cost { kCounted, kFree };
  void RestartTask(TaskId id, TaskStatus& task, const std::string& why, Cost cost);
  void TellRestart(const std::string& why);
  void GiveUp(TaskStatus& task);
  void RestartGang(TaskId id, const std::string& why, Cost cost);
  void CountRestart(TaskStatus& task);
  bool SpendRestart(const std::string& who, std::vector<double>* recent, int limit);
  // Removes from `recent` what lies before the budget's window.
  bool IsSpent(std::vector<double>* recent, int limit) const;
  double Backoff(size_t restarts_before) const;
  // Adds a disruption to those of the window; returns the pause before the restart.
  double NoteDisruption(std::vector<double>* recent) const;
  void CheckBackoffLimit();
  // The end of a sentence: "; the last failure was worker-0: exit code 3"; "" for none.
  std::string DescribeLastFailure() const;

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
  void FinishInTime();
  void EndFinishing();
  // Whether this evaluator may be restarted although the job's tasks have succeeded.
  bool EvaluatesOn(TaskId id) const;
  EvaluatorWork GetWork(TaskId id) const;
  // Why an evaluator that has not ended need not be waited for; "": it may have work.
  std::string WhyNoWork(TaskId id) const;
  void CutOff(TaskId id, TaskStatus& task, const std::string& reason);
  void EndFailing();
  // Stops tasks that have not begun when the job has ended.
  void StopUnstarted();
  void ExpireJob();
  bool AnyLive() const;

  const JobSpec& spec_;
  const Now now_;
  Reconciled result_;
  std::vector<TaskStatus*> counted_now_;  // tasks whose restart this pass has counted
  std::map<TaskId, EvaluatorWork> work_;  // as observed in this pass
  double wake_ = 0;                       // the job's clock
};

}  // namespace muster::job
