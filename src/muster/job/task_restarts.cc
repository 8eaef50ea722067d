// Starts tasks again, alone or all together, as far as the job's budgets allow it.
#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/job/reconciler.h"

namespace muster::job {
namespace {

constexpr size_t kMaxRecentDisruptions = 64;  // far more than double a pause to its maximum

std::string Ordinal(int n) {
  const bool teen = n % 100 >= 11 && n % 100 <= 13;
  const char* const ending = teen || n % 10 == 0 || n % 10 > 3 ? "th"
                             : n % 10 == 1                     ? "st"
                             : n % 10 == 2                     ? "nd"
                                                               : "rd";
  return StrCat(n, ending);
}

}  // namespace

double Reconciler::Backoff(size_t restarts_before) const {
  if (restarts_before == 0) return 0;
  const RestartBudget& budget = spec_.restart_budget;
  const double factor =
      std::ldexp(1.0, static_cast<int>(std::min<size_t>(restarts_before - 1, 40)));
  return std::min(budget.max_backoff_seconds, budget.backoff_seconds * factor);
}

double Reconciler::NoteDisruption(std::vector<double>* recent) const {
  const double since = clock() - spec_.restart_budget.window_seconds;
  std::erase_if(*recent, [since](double at) { return at <= since; });
  const double pause = Backoff(recent->size());
  if (recent->size() >= kMaxRecentDisruptions) recent->erase(recent->begin());
  recent->push_back(clock());
  return pause;
}

bool Reconciler::IsSpent(std::vector<double>* recent, int limit) const {
  const double since = clock() - spec_.restart_budget.window_seconds;
  std::erase_if(*recent, [since](double at) { return at <= since; });
  return std::cmp_greater_equal(recent->size(), limit);
}

// Returns false if the budget is spent: the job then fails.
bool Reconciler::SpendRestart(const std::string& who, std::vector<double>* recent, int limit) {
  if (IsSpent(recent, limit)) {
    Fail(StrCat(who, ", and its budget of ", limit, " restarts in ",
                PrintDuration(spec_.restart_budget.window_seconds), " is spent."));
    return false;
  }
  recent->push_back(clock());
  return true;
}

void Reconciler::RestartTask(TaskId id, TaskStatus& task, const std::string& why, Cost cost) {
  if (cost == Cost::kFree) {
    ++task.disruptions;
    task.not_before = clock() + NoteDisruption(&task.recent_disruptions);
    task.phase = TaskPhase::kWaiting;
    return TellRestart(why);
  }
  if (IsSpent(&task.recent_restarts, spec_.restart_budget.per_task) && CanDoWithout(id)) {
    return GiveUp(task);
  }
  const size_t before = task.recent_restarts.size();
  if (!SpendRestart(why, &task.recent_restarts, spec_.restart_budget.per_task) ||
      !SpendRestart(StrCat("job: ", why), &status().recent_restarts,
                    spec_.restart_budget.per_job)) {
    return;
  }
  CountRestart(task);
  task.not_before = clock() + Backoff(before);
  if (task.live()) {
    Stop(task, task.stop_reason, /*restart_after=*/true);
  } else {
    task.phase = TaskPhase::kWaiting;
  }
  TellRestart(why);
}

void Reconciler::TellRestart(const std::string& why) {
  if (status().phase != JobPhase::kActive) return;
  RemoveCondition("Running");
  SetCondition("Restarting", true, "TFJobRestarting",
               StrCat("TFJob ", spec_.name, " is restarting because of ", why, "."));
}

// The task stays as it ended, or is stopped. The job continues without it.
void Reconciler::GiveUp(TaskStatus& task) {
  const RestartBudget& budget = spec_.restart_budget;
  const std::string why = StrCat("given up: its budget of ", budget.per_task, " restarts in ",
                                 PrintDuration(budget.window_seconds), " is spent");
  for (TaskEnd* const end : {&*task.last_end, &status().failures.back().end}) {
    const std::string how = end->lost ? end->Describe() : end->detail;
    end->detail = how.empty() ? why : StrCat(why, "; ", how);
  }
}

void Reconciler::CountRestart(TaskStatus& task) {
  ++task.restarts;
  counted_now_.push_back(&task);
}

// All tasks but the evaluator end and are started again together.
void Reconciler::RestartGang(TaskId id, const std::string& why, Cost cost) {
  if (status().gang_restart) return;  // this failure is one of the same restart
  TaskStatus& culprit = status().tasks.at(id);
  double pause = Backoff(status().recent_restarts.size());
  if (cost == Cost::kFree) {
    ++culprit.disruptions;
    pause = NoteDisruption(&status().recent_disruptions);
  } else {
    if (!SpendRestart(why, &culprit.recent_restarts, spec_.restart_budget.per_task) ||
        !SpendRestart(StrCat("job: ", why), &status().recent_restarts,
                      spec_.restart_budget.per_job)) {
      return;
    }
    CountRestart(culprit);
  }
  status().gang_restart = true;
  for (auto& [other, task] : status().tasks) {
    if (other.type == TaskType::kEvaluator) continue;
    task.gang = true;
    task.not_before = clock() + pause;
    if (task.live()) {
      Stop(task, StrCat("all start again because of ", why), /*restart_after=*/true);
    } else {
      task.phase = TaskPhase::kWaiting;
    }
  }
  RemoveCondition("Running");
  SetCondition("Restarting", true, "TFJobRestarting",
               StrCat("TFJob ", spec_.name, " is restarting as a whole because of ", why, "."));
}

// As in TFJob, the sum of restarts of all tasks that may be restarted counts; a limit of 0 allows
// none. The restart that would reach the limit is not made, so people are shown the number of ends
// before it.
void Reconciler::CheckBackoffLimit() {
  if (status().phase != JobPhase::kActive || !spec_.backoff_limit) return;
  int sum = 0;
  for (const auto& [id, task] : status().tasks) {
    if (GetPolicy(id.type) == RestartPolicy::kNever) continue;
    sum += task.restarts + task.restarts_in_place;
  }
  if (sum < std::max(1, *spec_.backoff_limit)) return;
  for (TaskStatus* const task : counted_now_) --task->restarts;  // they are not made
  FailAndStop(StrCat("TFJob ", spec_.name,
                     " has failed because it has reached the specified backoff "
                     "limit: its tasks were to start again for the ",
                     Ordinal(sum), " time, backoffLimit ", *spec_.backoff_limit,
                     DescribeLastFailure(), "."));
}

std::string Reconciler::DescribeLastFailure() const {
  const auto& failures = result_.status.failures;
  const auto last = std::find_if(failures.rbegin(), failures.rend(),
                                 [](const Failure& each) { return !each.follow_up; });
  if (last == failures.rend()) return "";
  return StrCat("; the last failure was ", TaskName(last->task), ": ", last->end.Describe(),
                last->end.last_line.empty() ? "" : StrCat(", with '", last->end.last_line, "'"));
}

}  // namespace muster::job
