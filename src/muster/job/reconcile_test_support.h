// What the tests of Reconcile share: small jobs, and a launcher that does what it is told.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/job/pod_template.h"
#include "muster/job/reconcile.h"

namespace muster::job {

inline constexpr TaskId kChief0{TaskType::kChief, 0}, kWorker0{TaskType::kWorker, 0},
    kWorker1{TaskType::kWorker, 1}, kPs0{TaskType::kPs, 0}, kEvaluator0{TaskType::kEvaluator, 0};

inline JobSpec GetSpec(std::vector<std::pair<TaskType, int>> replicas,
                       RestartPolicy policy = RestartPolicy::kOnFailure) {
  JobSpec spec;
  spec.name = "job";
  for (const auto& [type, count] : replicas) {
    spec.replicas[type] = {count, policy, TemplateFor({"true"})};
  }
  return spec;
}

// A job and its launcher, whose tasks end as the test says.
class Bench {
 public:
  explicit Bench(JobSpec of) : spec(std::move(of)) { Pass(0); }

  void Pass(double seconds) {
    now_.monotonic += seconds;
    now_.wall += seconds;
    result = Reconcile(spec, result.status, seen, now_);
    seen.tasks.clear();
  }
  // What is asked for is done: starting tasks run, stopping ones end by SIGTERM.
  void Obey(double seconds = 1) {
    for (const Action& action : result.actions) {
      if (action.kind == Action::Kind::kStart) See(action.id, TaskObservation::Phase::kRunning, {});
      if (action.kind == Action::Kind::kStop)
        See(action.id, TaskObservation::Phase::kEnded, {.signal = 15});
    }
    Pass(seconds);
  }
  void See(TaskId id, TaskObservation::Phase phase, TaskEnd end) {
    seen.tasks.push_back({.id = id,
                          .incarnation = result.status.tasks.at(id).incarnation,
                          .phase = phase,
                          .end = std::move(end)});
  }
  void End(TaskId id, TaskEnd end, double seconds = 1) {
    See(id, TaskObservation::Phase::kEnded, std::move(end));
    Pass(seconds);
  }
  // What is seen of the evaluator, which runs.
  void SeeWork(EvaluatorWork work) {
    See(kEvaluator0, TaskObservation::Phase::kRunning, {});
    seen.tasks.back().work = work;
  }
  std::vector<std::string> Actions() const {
    std::vector<std::string> texts;
    for (const Action& action : result.actions) {
      const char* const verb = action.kind == Action::Kind::kStart  ? "start "
                               : action.kind == Action::Kind::kStop ? "stop "
                                                                    : "delete ";
      texts.push_back(StrCat(verb, TaskName(action.id), " #", action.incarnation));
    }
    return texts;
  }
  TaskPhase phase(TaskId id) const { return result.status.tasks.at(id).phase; }
  JobPhase job() const { return result.status.phase; }
  std::string FailedMessage() const {
    const Condition* const failed = result.status.FindCondition("Failed");
    return failed == nullptr ? "" : failed->message;
  }

  JobSpec spec;
  Reconciled result;
  Observed seen;

 private:
  Now now_{.wall = 1e9, .monotonic = 50, .clock_id = "boot"};
};

}  // namespace muster::job
