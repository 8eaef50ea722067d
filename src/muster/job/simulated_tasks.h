// What runs in simulated_job.h: a job of a random spec, and the incarnations of its tasks, which
// take their time to start, to end and to obey. For tests of this layer only.
#pragma once

#include <algorithm>
#include <map>
#include <utility>

#include "muster/base/simulation.h"
#include "muster/job/reconcile.h"

namespace muster::job {

using ObservedPhase = TaskObservation::Phase;

struct Incarnation {
  enum class State { kAsked, kRuns, kEnded } state = State::kAsked;
  double next_event = 0;  // when it begins to run, ends, or obeys a Stop
  bool stopping = false;
  bool is_gone = false;  // ended with its machine: reported as kGone
  TaskEnd end;
  double started_at = 0;
};

class SimulatedTasks : protected SimulatedHistory {
 protected:
  explicit SimulatedTasks(uint64_t seed) : SimulatedHistory(seed), spec_(RandomSpec()) {}

  double now() const { return time_.now(); }
  bool Chance(double p) { return time_.Chance(p); }
  double Uniform(double low, double high) { return time_.Uniform(low, high); }
  int Int(int low, int high) { return time_.Int(low, high); }

  JobSpec RandomSpec() {
    JobSpec spec;
    spec.name = "simulated";
    const auto add = [&](TaskType type, int count) {
      if (count == 0) return;
      const RestartPolicy policies[] = {RestartPolicy::kOnFailure, RestartPolicy::kOnFailure,
                                        RestartPolicy::kNever, RestartPolicy::kExitCode};
      spec.replicas[type] = {count, policies[Int(0, 3)], Json::object()};
    };
    add(TaskType::kChief, Int(0, 1));
    add(TaskType::kWorker, Int(spec.leader() ? 0 : 1, 3));
    add(TaskType::kPs, Int(0, 2));
    add(TaskType::kEvaluator, Int(0, 1));
    spec.restart_scope = Chance(0.4) ? RestartScope::kGang : RestartScope::kTask;
    spec.restart_budget = {.per_task = Int(0, 4),
                           .per_job = Int(3, 8),
                           .window_seconds = 600,
                           .backoff_seconds = 2,
                           .max_backoff_seconds = 20};
    spec.finish_timeout_seconds = 30;
    spec.all_workers = Chance(0.3);
    spec.needs_evaluator = Chance(0.5);
    spec.fail_fast = Chance(0.3);
    spec.dynamic_workers = Chance(0.2);
    if (Chance(0.3)) spec.active_deadline_seconds = Int(60, 400);
    if (Chance(0.2)) spec.backoff_limit = Int(0, 5);
    if (Chance(0.3)) spec.progress_timeout_seconds = 40;
    if (Chance(0.3)) spec.failure_policy = {RandomRule(), RandomRule()};
    return spec;
  }

  FailureRule RandomRule() {
    using Verdict = FailureRule::Action;
    constexpr Verdict kVerdicts[] = {Verdict::kRestartTask, Verdict::kRestartGang,
                                     Verdict::kFailJob, Verdict::kIgnore};
    FailureRule rule{.type = {}, .exit_codes = {}, .signals = {}, .action = kVerdicts[Int(0, 3)]};
    if (Chance(0.5)) rule.type = Chance(0.5) ? TaskType::kWorker : TaskType::kPs;
    if (Chance(0.5)) rule.signals = {9};
    for (int code = 1; Chance(0.7) && code < 140; code += 30) rule.exit_codes.push_back(code);
    return rule;
  }

  // Gangs restart tasks that are not to blame: their limit is the job's.
  bool HasGangs() const {
    return spec_.restart_scope == RestartScope::kGang ||
           std::any_of(spec_.failure_policy.begin(), spec_.failure_policy.end(),
                       [](const FailureRule& rule) {
                         return rule.action == FailureRule::Action::kRestartGang;
                       });
  }

  int live() const {
    int count = 0;
    for (const auto& [key, each] : incarnations_) {
      count += each.state == Incarnation::State::kRuns ? 1 : 0;
    }
    return count;
  }

  Observed Snapshot() const {
    Observed observed;
    for (const auto& [key, each] : incarnations_) {
      TaskObservation seen{.id = key.first, .incarnation = key.second};
      switch (each.state) {
        case Incarnation::State::kAsked:
          seen.phase = ObservedPhase::kStarting;
          break;
        case Incarnation::State::kRuns:
          seen.phase = ObservedPhase::kRunning;
          if (each.next_event - each.started_at > 1e4) seen.idle_seconds = now() - each.started_at;
          if (key.first.type == TaskType::kEvaluator) {
            seen.work = EvaluatorWork{.still_seconds = now() - each.started_at,
                                      .idle_seconds = seen.idle_seconds};
          }
          break;
        case Incarnation::State::kEnded:
          seen.phase = each.is_gone ? ObservedPhase::kGone : ObservedPhase::kEnded;
          seen.end = each.end;
          break;
      }
      observed.tasks.push_back(seen);
    }
    return observed;
  }

  void Do(const Action& action) {
    using State = Incarnation::State;
    auto& each = incarnations_[{action.id, action.incarnation}];
    const bool is_new = each.next_event == 0;
    if (action.kind == Action::Kind::kStart && is_new) {
      each.next_event = now() + Uniform(0.1, 8);
    } else if (action.kind == Action::Kind::kStop && !each.stopping &&
               each.state != State::kEnded) {
      each.stopping = true;
      each.next_event = now() + Uniform(0.1, 15);
    }
  }

  JobSpec spec_;
  std::map<std::pair<TaskId, int64_t>, Incarnation> incarnations_;
};

}  // namespace muster::job
