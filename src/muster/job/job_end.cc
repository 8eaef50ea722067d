// When a job has succeeded or failed, and what happens to its tasks then.
#include <algorithm>
#include <utility>

#include "muster/job/reconciler.h"

namespace muster::job {

void Reconciler::Stop(TaskStatus& task, const std::string& reason, bool restart_after) {
  task.phase = TaskPhase::kStopping;
  task.stop_reason = reason;
  task.restart_after = restart_after;
}

bool Reconciler::AnyLive() const {
  return std::any_of(result_.status.tasks.begin(), result_.status.tasks.end(),
                     [](const auto& entry) { return entry.second.live(); });
}

void Reconciler::Fail(const std::string& message) {
  JobStatus& s = status();
  if (s.phase != JobPhase::kActive) return;
  s.phase = JobPhase::kFailing;
  s.failure_message = message;
  s.gang_restart = false;
  s.ended_at = clock();
  s.completion_time = now_.wall;
  RemoveCondition("Restarting");
  if (IsTrue("Running")) SetCondition("Running", false, "TFJobFailed", message);
  SetCondition("Failed", true, "TFJobFailed", message);
}

void Reconciler::FailAndStop(const std::string& message) {
  Fail(message);
  for (auto& [id, task] : status().tasks) {
    if (task.live()) Stop(task, "the job has failed");
  }
}

// A job that has been decided stays so; what it still does ends at once.
void Reconciler::CheckCancelled(const Observed& observed) {
  if (observed.cancelled.empty() || status().ended()) return;
  if (status().phase == JobPhase::kSuspended) status().phase = JobPhase::kActive;
  Fail(observed.cancelled);
  for (auto& [id, task] : status().tasks) {
    task.restart_after = false;
    if (task.live() && task.phase != TaskPhase::kStopping) Stop(task, observed.cancelled);
  }
}

void Reconciler::CheckDeadline() {
  if (status().phase != JobPhase::kActive || !spec_.active_deadline_seconds) return;
  const auto deadline = static_cast<double>(*spec_.active_deadline_seconds);
  if (clock() - status().active_since < deadline) return;
  FailAndStop(StrCat("TFJob ", spec_.name,
                     " has failed because it was active longer than the "
                     "specified deadline of ",
                     PrintDuration(deadline), "."));
}

void Reconciler::CheckSuccess() {
  if (status().phase != JobPhase::kActive || status().gang_restart) return;
  const auto succeeded = [&](TaskId id) {
    const auto task = status().tasks.find(id);
    return task != status().tasks.end() && task->second.phase == TaskPhase::kSucceeded;
  };
  if (const auto leader = spec_.leader()) {
    if (succeeded({*leader, 0})) Succeed(StrCat(TaskName({*leader, 0}), " has succeeded."));
    return;
  }
  const int workers = spec_.count(TaskType::kWorker);
  int done = 0, open = 0;
  for (const auto& [id, task] : status().tasks) {
    if (id.type != TaskType::kWorker) continue;
    done += task.phase == TaskPhase::kSucceeded ? 1 : 0;
    open += task.live() || task.phase == TaskPhase::kWaiting ? 1 : 0;
  }
  if (done == workers) return Succeed("All workers have succeeded.");
  if (!spec_.all_workers && succeeded({TaskType::kWorker, 0})) {
    return Succeed("worker-0 has succeeded.");
  }
  if (open == 0) {
    Fail(StrCat("No worker is left: ", done, " of ", workers,
                " have succeeded, the failures of the "
                "others were not to be acted upon."));
  }
}

void Reconciler::Succeed(const std::string& message) {
  JobStatus& s = status();
  s.phase = JobPhase::kFinishing;
  s.ended_at = clock();
  s.completion_time = now_.wall;
  RemoveCondition("Restarting");
  if (IsTrue("Running")) SetCondition("Running", false, "TFJobSucceeded", message);
  SetCondition("Succeeded", true, "TFJobSucceeded",
               StrCat("TFJob ", spec_.name, " has succeeded: ", message));
}

// With a finish timeout workers and evaluator may end by themselves until then; parameter servers,
// which never do, are stopped when the others have ended. Without one cleanPodPolicy decides.
void Reconciler::Finish() {
  JobStatus& s = status();
  if (s.phase != JobPhase::kFinishing) return;
  for (auto& [id, task] : s.tasks) {
    if (task.phase == TaskPhase::kWaiting) task.phase = TaskPhase::kStopped;
    task.restart_after = false;
  }
  if (spec_.finish_timeout_seconds) {
    const bool late = clock() - s.ended_at >= *spec_.finish_timeout_seconds;
    bool others_live = false;
    for (auto& [id, task] : s.tasks) {
      if (id.type == TaskType::kPs || !task.live()) continue;
      if (late && task.phase != TaskPhase::kStopping) {
        Stop(task, StrCat("still ran ", PrintDuration(*spec_.finish_timeout_seconds),
                          " after the job had succeeded"));
      }
      others_live = true;
    }
    for (auto& [id, task] : s.tasks) {
      if (id.type != TaskType::kPs || !task.live() || others_live) continue;
      if (task.phase != TaskPhase::kStopping) Stop(task, "the job has succeeded");
    }
  } else if (spec_.clean_pod_policy != CleanPodPolicy::kNone) {
    for (auto& [id, task] : s.tasks) {
      if (task.live() && task.phase != TaskPhase::kStopping) Stop(task, "the job has succeeded");
    }
  } else {
    s.phase = JobPhase::kSucceeded;  // what still runs is left to run
    return;
  }
  if (!AnyLive()) s.phase = JobPhase::kSucceeded;
}

void Reconciler::EndFailing() {
  JobStatus& s = status();
  if (s.phase != JobPhase::kFailing) return;
  const bool leave =
      !spec_.finish_timeout_seconds && spec_.clean_pod_policy == CleanPodPolicy::kNone;
  for (auto& [id, task] : s.tasks) {
    if (task.phase == TaskPhase::kWaiting) task.phase = TaskPhase::kStopped;
    task.restart_after = false;
    if (!leave && task.live() && task.phase != TaskPhase::kStopping)
      Stop(task, "the job has failed");
  }
  const bool stopping = std::any_of(s.tasks.begin(), s.tasks.end(), [](const auto& entry) {
    return entry.second.phase == TaskPhase::kStopping;
  });
  if (leave ? !stopping : !AnyLive()) s.phase = JobPhase::kFailed;
}

void Reconciler::ExpireJob() {
  JobStatus& s = status();
  if (!s.ended() || !spec_.ttl_seconds || AnyLive()) return;
  if (clock() - s.ended_at < static_cast<double>(*spec_.ttl_seconds)) return;
  s.delete_sent = true;
  result_.actions.push_back({Action::Kind::kDeleteJob, {}, 0, "its time to live has passed"});
}

}  // namespace muster::job
