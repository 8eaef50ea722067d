// A job whose launcher and network misbehave: seeded histories of crashes, late, repeated and lost
// observations, lost actions, clock jumps, coordinator restarts, and people who suspend, resume or
// stop it. After every pass of Reconcile and at the end of each history invariants are checked:
//
//   one live        never two live incarnations of one task
//   waits           a job ends, or waits for a named thing with a wake-up time
//   ends            every history ends
//   budget          tasks are started again at most as often as the budgets of task and job say, in
//                   any window; starts after a disruption are not counted
//   disrupted       a disruption spends nothing of a budget: a task that has spent some of it has
//                   failed that often
//   given back      what gives its process back starts again, at no cost
//   truth           Succeeded only when the leader's process really exited with 0
//   deadline        failed by its deadline only when that much time has really passed
//   evaluator       after the training an evaluator that has work is stopped by people alone
//   nothing left    when the job has ended no process runs
//   final           Succeeded and Failed exclude each other and do not change any more; what has
//                   ended stays so
//   suspended       a suspended job starts nothing and stops all that runs
//   cancelled       a job that somebody stops starts nothing any more, stops all that runs at once,
//                   does not succeed after all, and ends soon, also when the coordinator that was
//                   told dies
//
// For tests of this layer only.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/strings.h"
#include "muster/job/reconcile.h"
#include "muster/job/simulated_tasks.h"

namespace muster::job {

using ReconcileFunction =
    std::function<Reconciled(const JobSpec&, const JobStatus&, const Observed&, const Now&)>;

constexpr double kNever = 1e12;
constexpr double kStopSeconds = 300;  // a Stop takes 15 s at most, a lost one is given again
constexpr char kCancelled[] = "stopped by a person";

class Simulation : SimulatedTasks {
 public:
  Simulation(uint64_t seed, ReconcileFunction reconcile)
      : SimulatedTasks(seed),
        reconcile_(std::move(reconcile)),
        suspend_at_(Chance(0.15) ? Uniform(0, 150) : kNever),
        resume_at_(suspend_at_ + Uniform(0.1, 200)),
        cancel_at_(Chance(0.2) ? Uniform(0, 200) : kNever) {}

  // The first invariant that does not hold; "" for none.
  std::string Run() {
    while (violation_.empty() && passes_ < 3000) {
      Pass();
      if (status_.ended() && live() == 0) return violation_;
      Advance();
    }
    Violated(StrCat("ends: not after ", passes_, " passes"));
    return violation_;
  }

 private:
  // Time goes to the next thing that happens, or to the wake-up.
  void Advance() {
    double next = std::min(now() + wake_after_, cancel_at_);
    for (const double at : {suspend_at_, resume_at_}) {
      if (at > now()) next = std::min(next, at);
    }
    for (const auto& [key, each] : incarnations_) {
      if (each.state != Incarnation::State::kEnded) next = std::min(next, each.next_event);
    }
    time_.Advance(std::max(now() + 0.1, next));
    wall_offset_ += Chance(0.02) ? (Chance(0.5) ? 3600 : -3600) : 0;
    if (Chance(0.01)) {  // another boot: its clock begins elsewhere
      boot_ += 1;
      boot_time_ = now() - Uniform(0, 1000);
    }
    for (auto& [key, each] : incarnations_) Step(key.first, each);
  }

  void Step(TaskId id, Incarnation& each) {
    using State = Incarnation::State;
    if (each.state == State::kEnded || each.next_event > now()) return;
    if (each.state == State::kAsked && !each.stopping) {
      each.state = State::kRuns;
      each.started_at = now();
      each.next_event = now() + (id.type == TaskType::kPs ? 1e9 : Uniform(1, 120));
      if (Chance(0.1)) each.next_event = now() + 1.5e4;  // hangs
      if (!FollowsDisruption(id, each)) starts_[id].push_back(now());
      CheckStart(id);
      return;
    }
    const bool was_running = each.state == State::kRuns;
    each.state = State::kEnded;
    each.is_gone = !was_running || Chance(0.1);
    if (each.is_gone) return;
    if (each.stopping) {
      // A task of ours that is told to end says so; others die of it, or of what comes then.
      each.end = {.signal = Chance(0.5) ? 15 : 9};
      if (Chance(0.3)) each.end = {.exit_code = 143};
    } else {
      const double outcome = Uniform(0, 1);
      if (outcome < 0.5) {
        each.end = {.exit_code = 0};
      } else if (outcome < 0.75) {
        each.end = {.exit_code = Int(1, 140)};
      } else if (outcome < 0.8) {  // with its machine, as its launcher knows
        each.end = {.exit_code = Chance(0.5) ? 137 : -1, .lost = Chance(0.5), .disrupted = true};
      } else if (outcome < 0.87) {  // SIGTERM from elsewhere: a drain, an eviction
        each.end = {.exit_code = 143};
      } else {
        each.end = {.signal = 9};
      }
    }
  }

  // Whether no budget counts the task's newest start. With gangs a disruption starts others, too:
  // what was decided is believed then.
  bool FollowsDisruption(TaskId id, const Incarnation& newest) {
    // Of the last one that ran, if none has failed since.
    bool disrupted = false, given_back = false;
    for (const auto& [key, each] : incarnations_) {
      if (key.first != id || &each == &newest) continue;
      const bool has_run = each.started_at > 0, is_given_back = given_back_.contains(key);
      given_back = is_given_back && (has_run || given_back);
      disrupted = has_run ? !each.is_gone && each.end.disrupted : is_given_back && disrupted;
    }
    if (given_back || !HasGangs()) return given_back || disrupted;
    const auto free = free_starts_.find(id);
    return free != free_starts_.end() && std::exchange(free->second, false);
  }

  void CheckDisruptions(const JobStatus& before, const JobStatus& s) {
    for (const auto& [id, task] : s.tasks) {
      const auto old = before.tasks.find(id);
      if (old == before.tasks.end() || task.disruptions == old->second.disruptions) continue;
      free_starts_[id] = true;
      for (const auto& [other, each] : s.tasks) {
        const auto earlier = before.tasks.find(other);
        const bool starts =
            earlier != before.tasks.end() && each.incarnation != earlier->second.incarnation;
        if (each.gang || starts) free_starts_[other] = true;
      }
    }
    const bool certain = !HasGangs() && suspend_at_ == kNever && !spec_.progress_timeout_seconds;
    const size_t spent = s.failure_message.find(", and its budget of ");
    if (!certain || !before.failure_message.empty() || spent == std::string::npos) return;
    for (const auto& [id, task] : s.tasks) {
      const bool is_culprit = s.failure_message.starts_with(StrCat(TaskName(id), ": "));
      const auto budget = static_cast<size_t>(spec_.restart_budget.per_task);
      if (is_culprit && starts_[id].size() <= budget) {
        Violated(StrCat("disrupted: ", TaskName(id), " has spent ", budget, " restarts in ",
                        starts_[id].size(), " starts"));
      }
    }
  }

  void CheckStart(TaskId id) {
    int running = 0;
    for (const auto& [key, each] : incarnations_) {
      running += key.first == id && each.state == Incarnation::State::kRuns ? 1 : 0;
    }
    if (running > 1) Violated(StrCat("one live: ", running, " of ", TaskName(id)));
    // On another boot the job's clock follows the wall clock, which may have jumped.
    if (boot_ > 0) return;
    const auto& times = starts_[id];
    const int budget = HasGangs() ? spec_.restart_budget.per_job : spec_.restart_budget.per_task;
    int recent = 0;
    for (const double at : times) recent += at > now() - 500 ? 1 : 0;
    if (recent > budget + 1) {
      Violated(StrCat("budget: ", TaskName(id), " started ", recent, " times, budget ", budget));
    }
    if (!HasGangs()) CheckJobsBudget();
  }

  void CheckJobsBudget() {
    int restarts = 0;
    for (const auto& [id, times] : starts_) {
      for (size_t i = 1; i < times.size(); ++i) restarts += times[i] > now() - 500 ? 1 : 0;
    }
    const int budget = spec_.restart_budget.per_job;
    if (restarts > budget) Violated(StrCat("budget: ", restarts, " of the job, not ", budget));
  }

  // What reaches the coordinator: the truth, an older one, a part, or nothing.
  Observed Deliver() {
    history_.push_back(Snapshot());
    if (history_.size() > 5) history_.pop_front();
    Observed observed = history_.back();
    if (Chance(0.2))
      observed = history_[static_cast<size_t>(Int(0, static_cast<int>(history_.size()) - 1))];
    if (Chance(0.1)) observed.tasks.clear();
    if (Chance(0.2)) {
      std::erase_if(observed.tasks, [this](const TaskObservation&) { return Chance(0.3); });
    }
    std::shuffle(observed.tasks.begin(), observed.tasks.end(), time_.random());
    return observed;
  }

  void Pass() {
    ++passes_;
    const Now clock{.wall = 1e9 + now() + wall_offset_,
                    .monotonic = 100 + now() - boot_time_,
                    .clock_id = StrCat("boot ", boot_)};
    if (now() >= cancel_at_) {
      cancelled_ = kCancelled;
      cancel_at_ = kNever;
    }
    spec_.suspend = now() >= suspend_at_ && now() < resume_at_;
    Observed observed = Deliver();
    observed.cancelled = cancelled_;
    if (Chance(0.02)) observed.give_back = GiveBackSome();
    const JobStatus before = status_;
    const Reconciled result = reconcile_(spec_, status_, observed, clock);
    CheckPass(before, result);
    CheckCancelled(before, result.status);
    CheckEvaluator(before, result.status);
    CheckSuspended(before, result.status);
    CheckDisruptions(before, result.status);
    CheckGivenBack(before, result.status);
    status_ = result.status;  // the journal: written before anything is done
    wake_after_ = result.wake_after;
    if (Chance(0.05)) {  // the coordinator dies before it acts; what it was told is forgotten
      cancelled_.clear();
      return;
    }
    for (const Action& action : result.actions) {
      if (!Chance(0.1)) Do(action);
      if (Chance(0.1)) Do(action);
    }
  }

  GiveBack GiveBackSome() {
    GiveBack some = {.note = "no room", .pause_seconds = Uniform(1, 30)};
    for (const auto& [id, task] : status_.tasks) {
      if (Chance(0.7)) some.tasks.push_back(id);
    }
    return some;
  }

  // What was given back starts again, and no budget counts that.
  void CheckGivenBack(const JobStatus& before, const JobStatus& s) {
    if (s.gave_back == before.gave_back) return;
    for (const auto& [id, task] : s.tasks) {
      const auto old = before.tasks.find(id);
      const bool is_given_back =
          old != before.tasks.end() && old->second.phase != TaskPhase::kStopping &&
          task.phase == TaskPhase::kStopping && task.stop_reason.starts_with("given back");
      if (!is_given_back) continue;
      given_back_.insert({id, task.incarnation});
      if (!task.restart_after) Violated(StrCat("given back: ", TaskName(id), " does not return"));
      if (task.restarts != old->second.restarts || task.disruptions != old->second.disruptions) {
        Violated(StrCat("given back: ", TaskName(id), " pays for it"));
      }
    }
  }

  void CheckPass(const JobStatus& before, const Reconciled& result) {
    const JobStatus& s = result.status;
    if (result.waiting_for.empty() || !(result.wake_after <= 60.001)) {
      Violated("waits: without a name or a wake-up time");
    }
    const bool succeeded = s.phase == JobPhase::kSucceeded || s.phase == JobPhase::kFinishing;
    if (succeeded && !AnyLeaderSucceeded()) Violated("truth: nobody exited with 0");
    for (const char* type : {"Succeeded", "Failed"}) {
      const Condition* const old = before.FindCondition(type);
      const Condition* const now = s.FindCondition(type);
      const bool same = old == nullptr || (now != nullptr && now->is_true == old->is_true &&
                                           now->reason == old->reason);
      if (!same) Violated(StrCat("final: ", type));
    }
    if (s.FindCondition("Succeeded") != nullptr && s.FindCondition("Failed") != nullptr) {
      Violated("final: Succeeded and Failed");
    }
    if (before.ended() && s.phase != before.phase) Violated("final: it has ended, and continues");
    if (s.ended() && live() > 0) Violated(StrCat("nothing left: ", live(), " still run"));
    const bool by_deadline = s.failure_message.find("deadline of") != std::string::npos;
    if (by_deadline && boot_ == 0 &&
        now() < static_cast<double>(*spec_.active_deadline_seconds) - 1) {
      Violated(StrCat("deadline: after ", now(), " s already"));
    }
  }

  void CheckEvaluator(const JobStatus& before, const JobStatus& s) {
    if (s.phase != JobPhase::kFinishing || !cancelled_.empty()) return;
    for (const auto& [id, task] : s.tasks) {
      const auto old = before.tasks.find(id);
      const bool was_running =
          old != before.tasks.end() && old->second.phase == TaskPhase::kRunning;
      if (id.type != TaskType::kEvaluator || !was_running) continue;
      const auto each = incarnations_.find({id, task.incarnation});
      const bool hangs =
          each != incarnations_.end() && each->second.next_event - each->second.started_at > 1e4;
      if (task.phase == TaskPhase::kStopping && !hangs) Violated("evaluator: it had work");
    }
  }

  // From the first pass on that knows of it, whether or not later ones do.
  void CheckCancelled(const JobStatus& before, const JobStatus& s) {
    if (!cancelled_.empty() && !before.ended() && !cancelled_since_) {
      cancelled_since_ = now();
      if (before.phase == JobPhase::kActive && s.phase == JobPhase::kFinishing) {
        Violated("cancelled: it succeeds");
      }
    }
    if (!cancelled_since_) return;
    if (s.phase == JobPhase::kActive) Violated("cancelled: it continues");
    CheckAllStop("cancelled", s);
    if (!s.ended() && now() > *cancelled_since_ + kStopSeconds) {
      Violated(StrCat("cancelled: not ended after ", now() - *cancelled_since_, " s"));
    }
  }

  void CheckSuspended(const JobStatus& before, const JobStatus& after) {
    if (after.phase == JobPhase::kSuspended) CheckAllStop("suspended", after);
    if (spec_.suspend && after.phase == JobPhase::kActive) Violated("suspended: it continues");
    const bool resumes = before.phase == JobPhase::kSuspended && after.phase == JobPhase::kActive;
    if (resumes) starts_.clear();  // what follows are first starts, which no budget counts
  }

  void CheckAllStop(const char* invariant, const JobStatus& status) {
    for (const auto& [id, task] : status.tasks) {
      if (task.live() && task.phase != TaskPhase::kStopping) {
        Violated(StrCat(invariant, ": ", TaskName(id), " is not stopped"));
      }
    }
  }

  bool AnyLeaderSucceeded() const {
    const TaskType type = spec_.leader().value_or(TaskType::kWorker);
    for (const auto& [key, each] : incarnations_) {
      if (key.first.type == type && each.state == Incarnation::State::kEnded && !each.is_gone &&
          each.end.succeeded()) {
        return true;
      }
    }
    return false;
  }

  const ReconcileFunction reconcile_;
  JobStatus status_;
  std::map<TaskId, std::vector<double>> starts_;  // those that a budget counts
  std::map<TaskId, bool> free_starts_;            // with gangs: the next one is not counted
  std::set<std::pair<TaskId, int64_t>> given_back_;
  std::deque<Observed> history_;
  double wake_after_ = 0, wall_offset_ = 0, boot_time_ = 0;
  int boot_ = 0, passes_ = 0;
  const double suspend_at_, resume_at_;    // when the spec is changed
  double cancel_at_;                       // when somebody asks to stop the job
  std::string cancelled_;                  // what the coordinator was told
  std::optional<double> cancelled_since_;  // when the first pass knew
};

}  // namespace muster::job
