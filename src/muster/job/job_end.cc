// Decides when a job has succeeded or failed, and what happens to its tasks then.
#include <algorithm>
#include <utility>

#include "muster/job/reconciler.h"

namespace muster::job {
namespace {

// An evaluator that may still have to evaluate the last checkpoint is waited for this long.
constexpr double kIdleEvaluatorSeconds = 900;

}  // namespace

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
  EndRunning();
  SetCondition("Failed", true, "TFJobFailed", message);
}

void Reconciler::FailAndStop(const std::string& message) {
  Fail(message);
  for (auto& [id, task] : status().tasks) {
    if (task.live()) Stop(task, "the job has failed");
  }
}

// A job whose end was decided keeps that end; its remaining work ends at once, also what
// cleanPodPolicy None has left to run.
void Reconciler::CheckCancelled(const Observed& observed) {
  if (observed.cancelled.empty()) return;
  if (status().ended()) {
    for (auto& [id, task] : status().tasks) {
      if (task.live() && task.phase != TaskPhase::kStopping) Stop(task, observed.cancelled);
    }
    return;
  }
  if (status().phase == JobPhase::kSuspended) status().phase = JobPhase::kActive;
  Fail(observed.cancelled);
  for (auto& [id, task] : status().tasks) {
    task.restart_after = false;
    if (EvaluatesOn(id) && task.phase == TaskPhase::kWaiting) {
      task.phase = TaskPhase::kStopped;
      task.cut_off = true;
      task.stop_reason = observed.cancelled;
    }
    if (task.live() && task.phase != TaskPhase::kStopping) CutOff(id, task, observed.cancelled);
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
  if (spec_.all_workers && spec_.min_workers && open == 0 &&
      done >= std::max(1, *spec_.min_workers)) {
    return Succeed(
        StrCat("All workers that were not given up, ", done, " of ", workers, ", have succeeded."));
  }
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
  EndRunning();
  if (!spec_.needs_evaluator || spec_.count(TaskType::kEvaluator) == 0) {
    SetCondition("Succeeded", true, "TFJobSucceeded",
                 StrCat("TFJob ", spec_.name, " has succeeded: ", message));
  }
}

bool Reconciler::EvaluatesOn(TaskId id) const {
  return id.type == TaskType::kEvaluator && spec_.needs_evaluator && spec_.finish_timeout_seconds &&
         result_.status.phase == JobPhase::kFinishing;
}

EvaluatorWork Reconciler::GetWork(TaskId id) const {
  const auto found = work_.find(id);
  return found == work_.end() ? EvaluatorWork() : found->second;
}

// An evaluator does not report that it is done: it looks for checkpoints until it finds that of its
// last step, which may never come.
std::string Reconciler::WhyNoWork(TaskId id) const {
  const EvaluatorWork work = GetWork(id);
  const double patience = *spec_.finish_timeout_seconds;
  if (work.newest == EvaluatorWork::Newest::kEvaluated && work.still_seconds >= patience) {
    return ", with the last checkpoint evaluated and nothing changed since";
  }
  if (work.idle_seconds >= kIdleEvaluatorSeconds) {
    return StrCat(", and did nothing for ", PrintDuration(kIdleEvaluatorSeconds));
  }
  return "";
}

// Stops the evaluator, whose work may be lost by that.
void Reconciler::CutOff(TaskId id, TaskStatus& task, const std::string& reason) {
  const bool is_done = status().phase != JobPhase::kFinishing || id.type != TaskType::kEvaluator ||
                       (spec_.finish_timeout_seconds && !WhyNoWork(id).empty() &&
                        GetWork(id).newest != EvaluatorWork::Newest::kNotEvaluated);
  Stop(task, reason);
  task.cut_off = !is_done;
}

// Parameter servers, which never end by themselves, are stopped when the others have ended; an
// evaluator is not stopped while it may have work.
void Reconciler::FinishInTime() {
  JobStatus& s = status();
  if (clock() - s.ended_at >= *spec_.finish_timeout_seconds) {
    for (auto& [id, task] : s.tasks) {
      if (id.type == TaskType::kPs || !task.live() || task.phase == TaskPhase::kStopping) continue;
      const std::string why = id.type == TaskType::kEvaluator ? WhyNoWork(id) : "";
      if (id.type == TaskType::kEvaluator && why.empty()) continue;
      CutOff(id, task,
             StrCat("still ran ", PrintDuration(*spec_.finish_timeout_seconds),
                    " after the job had succeeded", why));
    }
  }
  const bool others = std::any_of(s.tasks.begin(), s.tasks.end(), [this](const auto& entry) {
    return entry.first.type != TaskType::kPs &&
           (entry.second.live() ||
            (entry.second.phase == TaskPhase::kWaiting && EvaluatesOn(entry.first)));
  });
  for (auto& [id, task] : s.tasks) {
    if (others || id.type != TaskType::kPs || !task.live()) continue;
    if (task.phase != TaskPhase::kStopping) Stop(task, "the job has succeeded");
  }
}

// With a finish timeout the other tasks may end by themselves. Without a finish timeout
// cleanPodPolicy decides.
void Reconciler::Finish() {
  JobStatus& s = status();
  if (s.phase != JobPhase::kFinishing) return;
  for (auto& [id, task] : s.tasks) {
    task.restart_after = false;
    if (task.phase != TaskPhase::kWaiting || EvaluatesOn(id)) continue;
    const bool failed = task.last_end && !task.last_end->succeeded();
    task.phase = failed ? TaskPhase::kFailed : TaskPhase::kStopped;
  }
  if (spec_.finish_timeout_seconds) {
    FinishInTime();
  } else if (spec_.clean_pod_policy != CleanPodPolicy::kNone) {
    for (auto& [id, task] : s.tasks) {
      if (task.live() && task.phase != TaskPhase::kStopping) {
        CutOff(id, task, "the job has succeeded");
      }
    }
  } else {
    return EndFinishing();  // what still runs is left to run
  }
  const bool waits = std::any_of(s.tasks.begin(), s.tasks.end(), [](const auto& entry) {
    return entry.second.live() || entry.second.phase == TaskPhase::kWaiting;
  });
  if (!waits) EndFinishing();
}

void Reconciler::EndFinishing() {
  JobStatus& s = status();
  const bool lacks = std::any_of(s.tasks.begin(), s.tasks.end(), [](const auto& entry) {
    return entry.first.type == TaskType::kEvaluator &&
           (entry.second.cut_off || entry.second.phase == TaskPhase::kFailed);
  });
  const std::string although = Although(s);
  if (spec_.needs_evaluator && lacks) {
    s.phase = JobPhase::kFailed;
    s.failure_message = StrCat("the training has succeeded", although);
    SetCondition("Failed", true, "TFJobFailed", s.failure_message);
    return;
  }
  s.phase = JobPhase::kSucceeded;
  if (s.FindCondition("Succeeded") == nullptr) {
    return SetCondition("Succeeded", true, "TFJobSucceeded",
                        StrCat("TFJob ", spec_.name, " has succeeded."));
  }
  if (although.empty()) return;
  for (Condition& condition : s.conditions) {
    if (condition.type != "Succeeded") continue;
    condition.message.pop_back();  // the full stop
    condition.message += StrCat(although, ".");
    condition.last_update = now_.wall;
  }
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

// cleanPodPolicy None leaves to run what runs. A task that begins later would run for nobody.
void Reconciler::StopUnstarted() {
  if (!status().ended()) return;
  for (auto& [id, task] : status().tasks) {
    if (task.phase == TaskPhase::kStarting) Stop(task, "the job ended before this task had begun");
  }
}

void Reconciler::ExpireJob() {
  JobStatus& s = status();
  if (!s.ended() || !spec_.ttl_seconds || AnyLive()) return;
  if (clock() - s.ended_at < static_cast<double>(*spec_.ttl_seconds)) return;
  s.delete_sent = true;
  result_.actions.push_back({Action::Kind::kDeleteJob, {}, 0, "its time to live has passed"});
}

}  // namespace muster::job
