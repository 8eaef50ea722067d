// Records what was observed of tasks, and decides about those that ended.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"

#include "muster/job/reconciler.h"

namespace muster::job {
namespace {

constexpr size_t kMaxFailures = 20;
constexpr double kFollowUpSeconds =
    120;                                // survivors of a lost peer fail up to 31 s later (measured)
constexpr double kUnseenSeconds = 600;  // a task that ran so long may have trained
constexpr int kFirstSignalCode = 128;   // of shells and container runtimes

// Whether a program gave an exit code. Any other end was done to it: a signal, the loss of its
// machine or the like.
bool EndedByItself(const TaskEnd& end) {
  const bool cannot_start = end.exit_code == kNoProgramCode || end.exit_code == kNotExecutableCode;
  return end.exit_code >= 1 && end.exit_code < kFirstSignalCode && end.signal == 0 && !end.lost &&
         !end.disrupted && !end.out_of_memory && (end.detail.empty() || cannot_start);
}

// Whether a task that lost its peer may end so: it fails by itself, or its program is aborted, as
// C++ does without a handler for the error. Who kills a task does not care about another one.
bool MayFollow(const TaskEnd& end) {
  const bool aborted = end.signal == SIGABRT || end.exit_code == kFirstSignalCode + SIGABRT;
  return EndedByItself(end) || aborted;
}

bool Contains(const std::vector<int>& values, int value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool Fits(const FailureRule& rule, TaskId id, const TaskEnd& end) {
  if (rule.type && *rule.type != id.type) return false;
  if (rule.exit_codes.empty() && rule.signals.empty()) return true;
  if (end.disrupted) return false;  // what it ended with is not its own
  return (end.exit_code >= 0 && Contains(rule.exit_codes, end.exit_code)) ||
         (end.signal != 0 && Contains(rule.signals, end.signal));
}

// Drops each word that has a digit. Such words are steps, ports, names of temporary files: they
// differ between two failures that have one cause.
std::string WithoutNumbers(std::string_view line) {
  std::string kept;
  for (size_t begin = 0; begin < line.size();) {
    size_t end = begin;
    while (end < line.size() && absl::ascii_isalnum(static_cast<unsigned char>(line[end]))) ++end;
    const std::string_view word = line.substr(begin, end - begin);
    if (std::none_of(word.begin(), word.end(),
                     [](unsigned char c) { return absl::ascii_isdigit(c); })) {
      kept += word;
    }
    if (end < line.size()) kept += line[end++];
    begin = end;
  }
  return kept;
}

// TFJob's retryable ends: exit codes from 128 on, which shells and container runtimes give for
// signals, and ends without a code.
bool IsRetryable(const TaskEnd& end) {
  return end.signal != 0 || end.exit_code >= kFirstSignalCode || end.exit_code < 0;
}

}  // namespace

void Reconciler::RecordObserved(const Observed& observed) {
  using Phase = TaskObservation::Phase;
  for (const TaskObservation& seen : observed.tasks) {  // before any end is judged by it
    status().progressed = status().progressed || seen.progressed;
    const auto found = status().tasks.find(seen.id);
    const bool is_current =
        found != status().tasks.end() && found->second.incarnation == seen.incarnation;
    if (seen.work && is_current) work_[seen.id] = *seen.work;
  }
  for (const TaskObservation& seen : observed.tasks) {
    const auto found = status().tasks.find(seen.id);
    if (found == status().tasks.end()) continue;
    TaskStatus& task = found->second;
    // An older incarnation was seen to have ended before this one was started.
    if (seen.incarnation != task.incarnation || !task.live()) continue;
    RecordRestartsInPlace(seen, task);
    if (seen.phase == Phase::kEnded) {
      RecordEnd(seen.id, task, seen.end);
    } else if (seen.phase == Phase::kGone) {
      RecordEnd(seen.id, task, {.lost = true});
    } else if (seen.phase == Phase::kRunning) {
      if (task.phase == TaskPhase::kStarting) task.phase = TaskPhase::kRunning;
      RecordIdle(seen.id, task, seen.idle_seconds);
    }
  }
}

// The launcher has decided about these ends. They are recorded for people.
void Reconciler::RecordRestartsInPlace(const TaskObservation& seen, TaskStatus& task) {
  if (seen.restarts_in_place <= task.restarts_in_place) return;
  task.restarts_in_place = seen.restarts_in_place;
  if (!seen.end_in_place) return;
  task.last_end = seen.end_in_place;
  task.last_end->at = clock();
  const bool counts = status().phase == JobPhase::kActive && !task.last_end->succeeded();
  if (counts) RecordFailure(seen.id, task, *task.last_end);
}

void Reconciler::RecordIdle(TaskId id, TaskStatus& task, double idle_seconds) {
  if (!spec_.progress_timeout_seconds || id.type == TaskType::kPs) return;
  if (task.phase != TaskPhase::kRunning || status().phase != JobPhase::kActive) return;
  if (idle_seconds < *spec_.progress_timeout_seconds) return;
  Stop(task, StrCat("no sign of life for ", PrintDuration(std::floor(idle_seconds))));
  task.hanging = true;
  task.last_end = TaskEnd{.detail = task.stop_reason, .at = clock()};
  RecordFailure(id, task, *task.last_end);
  const FailureRule::Action action = DecideFailure(id, *task.last_end);
  const std::string why = StrCat(TaskName(id), ": ", task.stop_reason);
  if (action == FailureRule::Action::kFailJob) return Fail(StrCat(why, "."));
  if (action == FailureRule::Action::kRestartGang) return RestartGang(id, why, Cost::kCounted);
  if (action == FailureRule::Action::kRestartTask) RestartTask(id, task, why, Cost::kCounted);
}

void Reconciler::RecordEnd(TaskId id, TaskStatus& task, const TaskEnd& reported) {
  TaskEnd end = reported;
  end.at = clock();
  if (task.phase == TaskPhase::kStopping) {
    // The task ended because the job stopped it, whatever its exit code says. A task that succeeded
    // before the Stop reached it has succeeded.
    const bool done = end.succeeded() && !task.restart_after && !task.gang;
    // That a stopped task does not exist any more says less than how its run before ended.
    const bool says_less = end.lost && task.restarts_in_place > 0;
    if (!task.hanging && !(says_less && task.last_end)) task.last_end = end;
    task.phase = task.restart_after ? TaskPhase::kWaiting
                 : done             ? TaskPhase::kSucceeded
                                    : TaskPhase::kStopped;
    task.restart_after = false;
    if (done) task.cut_off = false;
    return;
  }
  task.last_end = end;
  const bool active = status().phase == JobPhase::kActive || EvaluatesOn(id);
  const bool decided_well =
      !active && (status().phase == JobPhase::kFinishing || status().phase == JobPhase::kSucceeded);
  const RestartPolicy policy = GetPolicy(id.type);
  if (end.succeeded() && policy != RestartPolicy::kAlways) {
    task.phase = TaskPhase::kSucceeded;
    return;
  }
  task.phase = end.succeeded() ? TaskPhase::kSucceeded : TaskPhase::kFailed;
  if (!end.succeeded() && !decided_well) RecordFailure(id, task, end);
  if (!active) return;  // what ends after the job has been decided decides nothing
  const std::string why = StrCat(TaskName(id), ": ", end.Describe());
  if (end.succeeded()) return RestartTask(id, task, why, Cost::kCounted);
  const FailureRule::Action action = DecideFailure(id, end);
  const bool restarts =
      action == FailureRule::Action::kRestartTask || action == FailureRule::Action::kRestartGang;
  if (RepeatsItself(id, task, end) && restarts) {
    return Fail(StrCat(why, ", as the time before",
                       end.last_line.empty() ? "" : StrCat(", with '", end.last_line, "'"),
                       ": it is not started a third time, since it would end the same way."));
  }
  switch (action) {
    case FailureRule::Action::kRestartTask:
      return RestartTask(id, task, why, end.disrupted ? Cost::kFree : Cost::kCounted);
    case FailureRule::Action::kRestartGang:
      return RestartGang(id, why, end.disrupted ? Cost::kFree : Cost::kCounted);
    case FailureRule::Action::kFailJob:
      return Fail(StrCat(why, " (restart policy ", RestartPolicyName(policy), ")."));
    case FailureRule::Action::kIgnore:
      return;
  }
}

void Reconciler::RecordFailure(TaskId id, const TaskStatus& task, const TaskEnd& end) {
  auto& failures = status().failures;
  const bool follow_up = MayFollow(end) && !failures.empty() && failures.back().task != id &&
                         end.at - failures.back().end.at <= kFollowUpSeconds;
  failures.push_back({id, task.incarnation, end, follow_up});
  if (failures.size() > kMaxFailures) failures.erase(failures.begin());
}

// What fails when a task was disrupted, or shortly after, may well work the next time. The tasks of
// a gang all end when its first task fails, and only that task's end counts.
bool Reconciler::RepeatsItself(TaskId id, TaskStatus& task, const TaskEnd& end) {
  JobStatus& s = status();
  if (!spec_.fail_fast || s.progressed) return false;
  if (!EndedByItself(end)) {
    for (auto& [other, each] : s.tasks) each.early_end.reset();
    s.disrupted_at = clock();
    return false;
  }
  if (s.disrupted_at >= 0 && clock() - s.disrupted_at < kFollowUpSeconds) return false;
  const auto is_same = [&](const std::optional<TaskEnd>& before) {
    // Without a model folder nobody can see whether the task trained in between.
    const bool trained = spec_.model_dir.empty() && before && end.at - before->at > kUnseenSeconds;
    return before && !trained && before->exit_code == end.exit_code &&
           WithoutNumbers(before->last_line) == WithoutNumbers(end.last_line);
  };
  bool repeats = is_same(task.early_end);
  if (spec_.restart_scope == RestartScope::kGang && id.type != TaskType::kEvaluator) {
    for (const auto& [other, each] : s.tasks) {
      repeats = repeats || (other.type != TaskType::kEvaluator && is_same(each.early_end));
    }
  }
  task.early_end = end;
  return repeats;
}

FailureRule::Action Reconciler::DecideFailure(TaskId id, const TaskEnd& end) const {
  using Decision = FailureRule::Action;
  const bool is_leader = spec_.leader() == id.type;
  const bool alone = id.type == TaskType::kEvaluator;  // no part of the gang
  const Decision restart = spec_.restart_scope == RestartScope::kGang && !alone
                               ? Decision::kRestartGang
                               : Decision::kRestartTask;
  for (const FailureRule& rule : spec_.failure_policy) {
    if (!Fits(rule, id, end)) continue;
    // A job that ignored its leader's failure could never end.
    if (rule.action == Decision::kIgnore && is_leader) return Decision::kFailJob;
    return rule.action;
  }
  const bool dynamic = spec_.dynamic_workers && id.type == TaskType::kWorker;
  const Decision give_up = dynamic || CanDoWithout(id) ? Decision::kIgnore : Decision::kFailJob;
  switch (GetPolicy(id.type)) {
    case RestartPolicy::kAlways:
    case RestartPolicy::kOnFailure:
      return restart;
    case RestartPolicy::kExitCode:
      return IsRetryable(end) || end.disrupted ? restart : give_up;
    case RestartPolicy::kNever:
      return give_up;
  }
  return give_up;
}

bool Reconciler::CanDoWithout(TaskId id) const {
  if (id.type != TaskType::kWorker || !spec_.min_workers) return false;
  if (!spec_.leader() && !spec_.all_workers) return false;  // then worker 0's end is the job's
  const auto is_left = [&](const auto& each) {
    return each.first.type == TaskType::kWorker && each.first != id &&
           each.second.phase != TaskPhase::kFailed && each.second.phase != TaskPhase::kStopped;
  };
  const auto& tasks = result_.status.tasks;
  return std::count_if(tasks.begin(), tasks.end(), is_left) >= *spec_.min_workers;
}

}  // namespace muster::job
