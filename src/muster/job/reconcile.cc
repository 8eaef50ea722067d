#include "muster/job/reconcile.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "muster/job/reconciler.h"

namespace muster::job {
namespace {

// A Start or Stop without a visible effect is repeated after this time. A job that only runs is
// looked at this often.
constexpr double kRepeatSeconds = 10;
constexpr double kHeartbeatSeconds = 60;
// The time between two looks at an evaluator for which the job waits.
constexpr double kEvaluatorSeconds = 2;
// TaskStatus::stop_reason
constexpr std::string_view kScaledDown = "scaled down";
constexpr std::string_view kGivenBack = "given back, since there is no room for all";

}  // namespace

RestartPolicy Reconciler::GetPolicy(TaskType type) const {
  const auto replica = spec_.replicas.find(type);
  return replica == spec_.replicas.end() ? RestartPolicy::kNever : replica->second.restart_policy;
}

// On the same clock the time that has passed is certain. On another one (another machine, or after
// a reboot) only the wall clock is left, which may have jumped; a jump back counts as no time.
void Reconciler::AdvanceClock() {
  JobStatus& s = status();
  const bool first = s.conditions.empty();
  double passed = 0;
  if (first) {
    s.last_monotonic = now_.monotonic;
  } else if (s.clock_id == now_.clock_id) {
    passed = now_.monotonic - s.last_monotonic;
  } else {
    passed = now_.wall - s.last_wall;
  }
  s.clock += std::max(0.0, passed);
  if (s.clock_id != now_.clock_id || now_.monotonic > s.last_monotonic) {
    s.last_monotonic = now_.monotonic;
  }
  s.clock_id = now_.clock_id;
  s.last_wall = now_.wall;
}

// Keeps one TaskStatus for each task of the spec; other tasks are stopped and then forgotten.
void Reconciler::MatchTasks() {
  if (status().conditions.empty()) {
    SetCondition("Created", true, "TFJobCreated", StrCat("TFJob ", spec_.name, " is created."));
    if (!spec_.suspend) status().start_time = now_.wall;
    status().active_since = clock();
  }
  if (status().phase != JobPhase::kActive && status().phase != JobPhase::kSuspended) return;
  for (const auto& [type, replica] : spec_.replicas) {
    for (int index = 0; index < replica.replicas; ++index)
      status().tasks.try_emplace({type, index});
  }
  for (auto& [id, task] : status().tasks) {
    if (id.index >= spec_.count(id.type)) {
      if (task.live()) Stop(task, std::string(kScaledDown));
    } else if (task.stop_reason == kScaledDown) {
      ScaleUp(task);
    }
  }
}

// The job has the task again that it was told to do without.
void Reconciler::ScaleUp(TaskStatus& task) {
  if (task.phase == TaskPhase::kStopping) {
    task.restart_after = true;
  } else if (task.phase == TaskPhase::kStopped) {
    const int64_t incarnation = task.incarnation;
    task = TaskStatus();
    task.incarnation = incarnation;
  }
}

void Reconciler::ForgetTasks() {
  std::erase_if(status().tasks, [this](const auto& entry) {
    return entry.first.index >= spec_.count(entry.first.type) && !entry.second.live();
  });
}

void Reconciler::Suspend() {
  JobStatus& s = status();
  if (s.phase == JobPhase::kActive && spec_.suspend) {
    s.phase = JobPhase::kSuspended;
    s.gang_restart = false;
    for (auto& [id, task] : s.tasks) task.early_end.reset();
    for (auto& [id, task] : s.tasks) {
      if (task.live()) Stop(task, "the job is suspended", /*restart_after=*/true);
    }
  }
  if (s.phase != JobPhase::kSuspended) return;
  if (spec_.suspend) {
    if (AnyLive()) return;
    if (IsTrue("Running"))
      SetCondition("Running", false, "TFJobSuspended",
                   StrCat("TFJob ", spec_.name, " is suspended."));
    SetCondition("Suspended", true, "TFJobSuspended",
                 StrCat("TFJob ", spec_.name, " is suspended."));
  } else if (!AnyLive()) {
    s.phase = JobPhase::kActive;
    s.active_since = clock();
    s.start_time = now_.wall;
    SetCondition("Suspended", false, "TFJobResumed", StrCat("TFJob ", spec_.name, " is resumed."));
  }
}

void Reconciler::StartWaiting() {
  JobStatus& s = status();
  const bool active = s.phase == JobPhase::kActive && !spec_.suspend;
  if (!active && s.phase != JobPhase::kFinishing) return;
  if (s.gang_restart) {
    const bool all_ended = std::none_of(s.tasks.begin(), s.tasks.end(), [](const auto& entry) {
      return entry.second.gang && entry.second.live();
    });
    if (!all_ended) return;
    s.gang_restart = false;
    for (auto& [id, task] : s.tasks) task.gang = false;
  }
  for (auto& [id, task] : s.tasks) {
    if (task.phase != TaskPhase::kWaiting || task.not_before > clock()) continue;
    if (!active && !EvaluatesOn(id)) continue;
    task.phase = TaskPhase::kStarting;
    task.incarnation = s.next_incarnation++;
    task.restarts += std::exchange(task.restarts_in_place, 0);  // backoffLimit counts both
    task.hanging = task.cut_off = false;
  }
}

void Reconciler::GiveBackProcesses(const Observed& observed) {
  JobStatus& s = status();
  const bool active = s.phase == JobPhase::kActive && !spec_.suspend && !s.gang_restart;
  if (!observed.give_back || !active) return;
  ++s.gave_back;
  s.room_note = observed.give_back->note;
  for (const TaskId id : observed.give_back->tasks) {
    TaskStatus& task = s.tasks.at(id);
    const bool runs = task.phase == TaskPhase::kRunning;
    if (!runs && task.phase != TaskPhase::kStarting) continue;
    Stop(task, std::string(kGivenBack), /*restart_after=*/true);
    task.not_before = clock() + observed.give_back->pause_seconds;
    if (runs) TellRestart(std::string(kGivenBack));
  }
}

void Reconciler::ForgetRoomNote() {
  JobStatus& s = status();
  const bool any_left = std::any_of(s.tasks.begin(), s.tasks.end(), [](const auto& entry) {
    const TaskPhase phase = entry.second.phase;
    return phase == TaskPhase::kWaiting || phase == TaskPhase::kStarting ||
           phase == TaskPhase::kStopping;
  });
  if (s.phase != JobPhase::kActive || !any_left) s.room_note.clear();
}

// Returns all that was decided, now or earlier, as actions. They are returned again until their
// effect shows.
void Reconciler::GiveActions(const Observed& observed) {
  auto& actions = result_.actions;
  for (const auto& [id, task] : status().tasks) {
    if (task.phase == TaskPhase::kStarting) {
      actions.push_back({Action::Kind::kStart, id, task.incarnation, ""});
    } else if (task.phase == TaskPhase::kStopping) {
      actions.push_back(
          {Action::Kind::kStop, id, task.incarnation, task.stop_reason, task.hanging});
    }
  }
  // Stops incarnations that run and should not: those of a task that was forgotten, or that has
  // ended according to the job's status.
  for (const TaskObservation& seen : observed.tasks) {
    if (seen.phase == TaskObservation::Phase::kEnded ||
        seen.phase == TaskObservation::Phase::kGone) {
      continue;
    }
    const auto task = status().tasks.find(seen.id);
    if (task != status().tasks.end() && task->second.incarnation == seen.incarnation) continue;
    const Action stop{Action::Kind::kStop, seen.id, seen.incarnation, "not of this job any more"};
    if (std::find(actions.begin(), actions.end(), stop) == actions.end()) actions.push_back(stop);
  }
}

// The job runs when its leader runs; without a leader, when any worker runs.
void Reconciler::UpdateRunning() {
  if (status().phase != JobPhase::kActive) return;
  const TaskType type = spec_.leader().value_or(TaskType::kWorker);
  const bool running =
      std::any_of(status().tasks.begin(), status().tasks.end(), [type](const auto& entry) {
        return entry.first.type == type && entry.second.phase == TaskPhase::kRunning;
      });
  const bool again = IsTrue("Restarting");
  const bool restarting =
      std::any_of(status().tasks.begin(), status().tasks.end(), [again](const auto& entry) {
        return entry.second.phase == TaskPhase::kWaiting || entry.second.restart_after ||
               (again && entry.second.phase == TaskPhase::kStarting);
      });
  if (!running || restarting) return;
  RemoveCondition("Restarting");
  SetCondition("Running", true, "TFJobRunning", StrCat("TFJob ", FullName(), " is running."));
}

void Reconciler::WakeAt(double at, const std::string& why) {
  if (at >= wake_) return;
  wake_ = at;
  result_.waiting_for = why;
}

void Reconciler::ScheduleWake() {
  const JobStatus& s = status();
  wake_ = std::numeric_limits<double>::infinity();
  if (s.ended() && !AnyLive()) {
    // Nothing but the job's removal is left to do.
    WakeAt(clock() + kHeartbeatSeconds, "nothing: the job has ended");
    if (spec_.ttl_seconds) {
      WakeAt(std::max(clock() + 1, s.ended_at + static_cast<double>(*spec_.ttl_seconds)),
             "its time to live to pass");
    }
  } else if (s.phase == JobPhase::kSuspended && !AnyLive()) {
    WakeAt(clock() + kHeartbeatSeconds, "being resumed");
  } else {
    WakeAt(clock() + kHeartbeatSeconds, "its tasks to end");
  }
  for (const auto& [id, task] : s.tasks) {
    if (task.phase == TaskPhase::kStarting) {
      WakeAt(clock() + kRepeatSeconds, StrCat(TaskName(id), " to start"));
    } else if (task.phase == TaskPhase::kStopping) {
      WakeAt(clock() + kRepeatSeconds, StrCat(TaskName(id), " to stop"));
    } else if (task.phase == TaskPhase::kRunning && spec_.progress_timeout_seconds) {
      WakeAt(clock() + *spec_.progress_timeout_seconds,
             StrCat(TaskName(id), " to continue or end"));
    } else if (task.phase == TaskPhase::kWaiting && task.not_before > clock() &&
               (s.phase == JobPhase::kActive || EvaluatesOn(id))) {
      WakeAt(task.not_before, StrCat(TaskName(id), "'s turn to be started again"));
    }
  }
  if (s.phase == JobPhase::kActive && spec_.active_deadline_seconds) {
    WakeAt(s.active_since + static_cast<double>(*spec_.active_deadline_seconds),
           "its deadline or its tasks to end");
  }
  const double patience = s.ended_at + spec_.finish_timeout_seconds.value_or(0);
  if (s.phase == JobPhase::kFinishing && patience > clock()) {
    WakeAt(patience, "the other tasks to finish");
  }
  for (const auto& [id, task] : s.tasks) {
    if (s.phase != JobPhase::kFinishing || id.type != TaskType::kEvaluator) continue;
    if (task.phase != TaskPhase::kRunning) continue;
    WakeAt(clock() + kEvaluatorSeconds, StrCat(TaskName(id), " to finish its evaluations"));
  }
  result_.wake_after = std::max(0.0, wake_ - clock());
}

void Reconciler::SetCondition(std::string_view type, bool is_true, std::string_view reason,
                              const std::string& message) {
  auto& conditions = status().conditions;
  auto found = std::find_if(conditions.begin(), conditions.end(),
                            [&](const Condition& each) { return each.type == type; });
  if (found != conditions.end() && found->is_true == is_true && found->reason == reason) return;
  Condition condition{std::string(type), is_true,   std::string(reason),
                      message,           now_.wall, now_.wall};
  if (found != conditions.end()) {
    if (found->is_true == is_true) condition.last_transition = found->last_transition;
    conditions.erase(found);
  }
  conditions.push_back(std::move(condition));
}

void Reconciler::RemoveCondition(std::string_view type) {
  std::erase_if(status().conditions, [&](const Condition& each) { return each.type == type; });
}

// The condition keeps its reason and message, as in TFJob.
void Reconciler::EndRunning() {
  for (Condition& condition : status().conditions) {
    if (condition.type != "Running" || !condition.is_true) continue;
    condition.is_true = false;
    condition.last_update = condition.last_transition = now_.wall;
  }
}

std::string Reconciler::FullName() const {
  return spec_.name_space.empty() ? spec_.name : StrCat(spec_.name_space, "/", spec_.name);
}

bool Reconciler::IsTrue(std::string_view type) const {
  const Condition* const condition = result_.status.FindCondition(type);
  return condition != nullptr && condition->is_true;
}

Reconciled Reconciler::Run(const Observed& observed) && {
  AdvanceClock();
  MatchTasks();
  RecordObserved(observed);
  ForgetTasks();
  CheckCancelled(observed);
  CheckDeadline();
  CheckBackoffLimit();
  CheckSuccess();
  Suspend();
  GiveBackProcesses(observed);
  StartWaiting();
  ForgetRoomNote();
  UpdateRunning();
  Finish();
  EndFailing();
  StopUnstarted();
  ExpireJob();
  GiveActions(observed);
  ScheduleWake();
  return std::move(result_);
}

Reconciled Reconcile(const JobSpec& spec, const JobStatus& status, const Observed& observed,
                     const Now& now) {
  return Reconciler(spec, status, now).Run(observed);
}

}  // namespace muster::job
