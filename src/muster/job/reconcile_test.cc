#include "muster/job/reconcile.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/job/pod_template.h"

namespace muster::job {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Phase = TaskObservation::Phase;
using Kind = Action::Kind;

constexpr TaskId kChief0{TaskType::kChief, 0}, kWorker0{TaskType::kWorker, 0},
    kWorker1{TaskType::kWorker, 1}, kPs0{TaskType::kPs, 0}, kEvaluator0{TaskType::kEvaluator, 0};

JobSpec SpecOf(std::vector<std::pair<TaskType, int>> replicas,
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
      if (action.kind == Kind::kStart) See(action.id, Phase::kRunning, {});
      if (action.kind == Kind::kStop) See(action.id, Phase::kEnded, {.signal = 15});
    }
    Pass(seconds);
  }
  void See(TaskId id, Phase phase, TaskEnd end) {
    seen.tasks.push_back({.id = id,
                          .incarnation = result.status.tasks.at(id).incarnation,
                          .phase = phase,
                          .end = std::move(end)});
  }
  void End(TaskId id, TaskEnd end, double seconds = 1) {
    See(id, Phase::kEnded, std::move(end));
    Pass(seconds);
  }
  std::vector<std::string> Actions() const {
    std::vector<std::string> texts;
    for (const Action& action : result.actions) {
      const char* const verb = action.kind == Kind::kStart  ? "start "
                               : action.kind == Kind::kStop ? "stop "
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

TEST(Reconcile, StartsEachTaskAndRepeatsUntilItShows) {
  Bench bench(SpecOf({{TaskType::kChief, 1}, {TaskType::kWorker, 2}}));
  const auto all = ElementsAre("start chief-0 #1", "start worker-0 #2", "start worker-1 #3");
  EXPECT_THAT(bench.Actions(), all);
  bench.Pass(5);
  EXPECT_THAT(bench.Actions(), all);
  EXPECT_THAT(bench.result.waiting_for, HasSubstr("chief-0 to start"));
  bench.Obey();
  EXPECT_THAT(bench.Actions(), ElementsAre());
  ASSERT_NE(bench.result.status.FindCondition("Running"), nullptr);
}

TEST(Reconcile, TheChiefsSuccessIsTheJobsAndPsAreStoppedLast) {
  JobSpec spec = SpecOf({{TaskType::kChief, 1},
                         {TaskType::kWorker, 1},
                         {TaskType::kPs, 1},
                         {TaskType::kEvaluator, 1}});
  spec.finish_timeout_seconds = 60;
  Bench bench(spec);
  bench.Obey();
  bench.End(kChief0, {.exit_code = 0});
  EXPECT_EQ(bench.job(), JobPhase::kFinishing);
  EXPECT_THAT(bench.Actions(), ElementsAre());  // workers and evaluator may finish
  bench.End(kWorker0, {.exit_code = 0}, 5);
  EXPECT_EQ(bench.phase(kPs0), TaskPhase::kRunning);
  EXPECT_THAT(bench.result.waiting_for, HasSubstr("finish"));
  bench.Pass(60);
  EXPECT_EQ(bench.phase(kEvaluator0), TaskPhase::kStopping);
  EXPECT_THAT(bench.result.status.tasks.at(kEvaluator0).stop_reason,
              HasSubstr("still ran 1m after the job had succeeded"));
  bench.Obey();
  EXPECT_EQ(bench.phase(kPs0), TaskPhase::kStopping);
  bench.Obey();
  EXPECT_EQ(bench.job(), JobPhase::kSucceeded);
  EXPECT_TRUE(bench.result.status.FindCondition("Succeeded")->is_true);
  EXPECT_FALSE(bench.result.status.FindCondition("Running")->is_true);
}

TEST(Reconcile, PoliciesDecideWhichFailuresRestart) {
  const struct {
    RestartPolicy policy;
    TaskEnd end;
    bool restarts;
  } cases[] = {
      {RestartPolicy::kNever, {.exit_code = 1}, false},
      {RestartPolicy::kNever, {.signal = 9}, false},
      {RestartPolicy::kOnFailure, {.exit_code = 1}, true},
      {RestartPolicy::kOnFailure, {.lost = true}, true},
      {RestartPolicy::kExitCode, {.exit_code = 1}, false},
      {RestartPolicy::kExitCode, {.exit_code = 127}, false},
      {RestartPolicy::kExitCode, {.exit_code = 128}, true},
      {RestartPolicy::kExitCode, {.exit_code = 137}, true},
      {RestartPolicy::kExitCode, {.signal = 9}, true},
      {RestartPolicy::kExitCode, {.lost = true}, true},
      {RestartPolicy::kAlways, {.exit_code = 0}, true},
      {RestartPolicy::kAlways, {.exit_code = 7}, true},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(StrCat(RestartPolicyName(each.policy), ", ", each.end.Describe()));
    Bench bench(SpecOf({{TaskType::kChief, 1}, {TaskType::kWorker, 2}}, each.policy));
    bench.Obey();
    bench.End(kWorker1, each.end);
    EXPECT_EQ(bench.job(), each.restarts ? JobPhase::kActive : JobPhase::kFailed);
    if (!each.restarts) {
      EXPECT_THAT(bench.FailedMessage(), HasSubstr(StrCat("worker-1: ", each.end.Describe())));
      continue;
    }
    ASSERT_NE(bench.result.status.FindCondition("Restarting"), nullptr);
    EXPECT_EQ(bench.result.status.FindCondition("Running"), nullptr);
    EXPECT_THAT(bench.Actions(), ElementsAre("start worker-1 #4"));
    bench.Obey();
    EXPECT_EQ(bench.result.status.FindCondition("Restarting"), nullptr);
    EXPECT_NE(bench.result.status.FindCondition("Running"), nullptr);
  }
}

TEST(Reconcile, AGangStartsAgainOnlyWhenAllOfItHasEnded) {
  JobSpec spec = SpecOf({{TaskType::kWorker, 2}, {TaskType::kEvaluator, 1}});
  spec.restart_scope = RestartScope::kGang;
  Bench bench(spec);
  bench.Obey();
  bench.End(kWorker1, {.signal = 9});
  EXPECT_THAT(bench.Actions(), ElementsAre("stop worker-0 #2"));
  bench.Pass(30);  // worker 0 ignores SIGTERM for long
  EXPECT_THAT(bench.Actions(), ElementsAre("stop worker-0 #2"));
  EXPECT_EQ(bench.phase(kEvaluator0), TaskPhase::kRunning);
  bench.End(kWorker0, {.signal = 9});
  EXPECT_THAT(bench.Actions(), ElementsAre("start worker-0 #4", "start worker-1 #5"));
  EXPECT_EQ(bench.result.status.recent_restarts.size(), 1u);  // one restart, not two
}

TEST(Reconcile, ARestartBudgetHoldsOverItsWindowWithGrowingPauses) {
  JobSpec spec = SpecOf({{TaskType::kChief, 1}, {TaskType::kWorker, 1}});
  spec.restart_budget = {.per_task = 3, .window_seconds = 100, .backoff_seconds = 2};
  Bench bench(spec);
  bench.Obey();
  bench.End(kWorker0, {.exit_code = 3}, 0);
  EXPECT_EQ(bench.phase(kWorker0), TaskPhase::kStarting);  // the first time at once
  bench.Obey(0);
  for (const double pause : {2.0, 4.0}) {
    bench.End(kWorker0, {.exit_code = 3}, 0);
    EXPECT_EQ(bench.phase(kWorker0), TaskPhase::kWaiting);
    EXPECT_EQ(bench.result.wake_after, pause);
    bench.Pass(pause);
    EXPECT_EQ(bench.phase(kWorker0), TaskPhase::kStarting);
    bench.Obey(0);
  }
  Bench later = bench;
  bench.End(kWorker0, {.exit_code = 3}, 0);
  EXPECT_THAT(bench.FailedMessage(),
              HasSubstr("worker-0: exit code 3, and its budget of 3 restarts in 1m40s is spent"));
  later.End(kWorker0, {.exit_code = 3}, 120);  // the window has passed
  EXPECT_EQ(later.job(), JobPhase::kActive);
}

TEST(Reconcile, FailureRulesComeBeforeTheRestartPolicy) {
  using Rule = FailureRule::Action;
  JobSpec spec = SpecOf({{TaskType::kChief, 1}, {TaskType::kWorker, 2}}, RestartPolicy::kNever);
  spec.failure_policy = {{TaskType::kWorker, {3}, {}, Rule::kIgnore},
                         {TaskType::kWorker, {}, {9}, Rule::kRestartTask},
                         {TaskType::kChief, {4}, {}, Rule::kIgnore}};
  Bench bench(spec);
  bench.Obey();
  Bench chief = bench;
  bench.End(kWorker0, {.signal = 9});
  EXPECT_EQ(bench.phase(kWorker0), TaskPhase::kStarting);
  bench.End(kWorker1, {.exit_code = 3});
  EXPECT_EQ(bench.phase(kWorker1), TaskPhase::kFailed);
  EXPECT_EQ(bench.job(), JobPhase::kActive);
  chief.End(kChief0, {.exit_code = 4});  // a leader's failure cannot be ignored
  EXPECT_EQ(chief.job(), JobPhase::kFailed);
}

TEST(Reconcile, DeadlineAndBackoffLimitStopAllWhateverThePolicy) {
  JobSpec spec = SpecOf({{TaskType::kChief, 1}, {TaskType::kPs, 1}});
  spec.active_deadline_seconds = 100;
  Bench bench(spec);
  bench.Obey();
  EXPECT_LE(bench.result.wake_after, 100);
  bench.Pass(98);
  EXPECT_EQ(bench.job(), JobPhase::kActive);
  bench.Pass(2);
  EXPECT_THAT(bench.FailedMessage(), HasSubstr("deadline of 1m40s"));
  EXPECT_THAT(bench.Actions(), ElementsAre("stop chief-0 #1", "stop ps-0 #2"));
  bench.Obey();
  EXPECT_EQ(bench.job(), JobPhase::kFailed);

  spec.active_deadline_seconds.reset();
  spec.backoff_limit = 1;
  Bench limited(spec);
  limited.Obey();
  limited.End(kPs0, {.exit_code = 1});
  EXPECT_THAT(limited.FailedMessage(), HasSubstr("backoffLimit 1"));
}

TEST(Reconcile, SuspendStopsAllAndResumeStartsAgainWithoutSpendingRestarts) {
  Bench bench(SpecOf({{TaskType::kChief, 1}, {TaskType::kWorker, 1}}));
  bench.Obey();
  bench.spec.suspend = true;
  bench.Pass(1);
  EXPECT_THAT(bench.Actions(), ElementsAre("stop chief-0 #1", "stop worker-0 #2"));
  EXPECT_EQ(bench.result.status.FindCondition("Suspended"), nullptr);
  bench.Obey();
  EXPECT_TRUE(bench.result.status.FindCondition("Suspended")->is_true);
  EXPECT_FALSE(bench.result.status.FindCondition("Running")->is_true);
  bench.Pass(3600);
  EXPECT_THAT(bench.Actions(), ElementsAre());
  bench.spec.suspend = false;
  bench.Pass(1);
  EXPECT_EQ(bench.result.status.FindCondition("Suspended")->reason, "TFJobResumed");
  EXPECT_THAT(bench.Actions(), ElementsAre("start chief-0 #3", "start worker-0 #4"));
  EXPECT_TRUE(bench.result.status.recent_restarts.empty());
}

TEST(Reconcile, WithoutAChiefWorkerZeroOrAllWorkersDecide) {
  Bench first(SpecOf({{TaskType::kWorker, 2}}));
  first.Obey();
  first.End(kWorker1, {.exit_code = 0});
  EXPECT_EQ(first.job(), JobPhase::kActive);
  first.End(kWorker0, {.exit_code = 0});
  EXPECT_EQ(first.job(), JobPhase::kSucceeded);

  JobSpec spec = SpecOf({{TaskType::kWorker, 2}});
  spec.all_workers = true;
  Bench all(spec);
  all.Obey();
  all.End(kWorker0, {.exit_code = 0});
  EXPECT_EQ(all.job(), JobPhase::kActive);
  all.End(kWorker1, {.exit_code = 0});
  EXPECT_EQ(all.job(), JobPhase::kSucceeded);
}

TEST(Reconcile, DynamicWorkersMayFailAndComeAndGo) {
  JobSpec spec = SpecOf({{TaskType::kWorker, 2}}, RestartPolicy::kNever);
  spec.dynamic_workers = true;
  Bench bench(spec);
  bench.Obey();
  bench.End(kWorker1, {.exit_code = 1});
  EXPECT_EQ(bench.job(), JobPhase::kActive);
  bench.spec.replicas[TaskType::kWorker].replicas = 3;
  bench.Pass(1);
  EXPECT_THAT(bench.Actions(), ElementsAre("start worker-2 #3"));
  bench.Obey();
  bench.spec.replicas[TaskType::kWorker].replicas = 1;
  bench.Pass(1);
  EXPECT_THAT(bench.Actions(), ElementsAre("stop worker-2 #3"));
  bench.Obey();
  EXPECT_EQ(bench.result.status.tasks.size(), 1u);
  bench.End(kWorker0, {.exit_code = 1});  // nobody is left: it may not wait for ever
  EXPECT_EQ(bench.job(), JobPhase::kFailed);
}

TEST(Reconcile, AWorkerThatTheJobCanDoWithoutIsGivenUp) {
  JobSpec spec = SpecOf({{TaskType::kChief, 1}, {TaskType::kWorker, 2}});
  spec.min_workers = 1;
  spec.restart_budget.per_task = 1;
  Bench bench(spec);
  bench.Obey();
  bench.End(kWorker1, {.signal = 9});
  bench.Pass(2);
  bench.Obey();
  bench.End(kWorker1, {.signal = 9});
  EXPECT_EQ(bench.job(), JobPhase::kActive);
  bench.Pass(100);
  EXPECT_THAT(bench.Actions(), IsEmpty());
  EXPECT_EQ(bench.phase(kWorker1), TaskPhase::kFailed);
  EXPECT_THAT(bench.result.status.tasks.at(kWorker1).last_end->Describe(),
              AllOf(HasSubstr("given up"), HasSubstr("SIGKILL")));
  // The last one is needed.
  bench.End(kWorker0, {.signal = 9});
  bench.Pass(2);
  bench.Obey();
  bench.End(kWorker0, {.signal = 9});
  EXPECT_NE(bench.job(), JobPhase::kActive);
}

TEST(Reconcile, AHangingTaskIsStoppedAndNamed) {
  JobSpec spec = SpecOf({{TaskType::kChief, 1}, {TaskType::kPs, 1}});
  spec.progress_timeout_seconds = 30;
  Bench bench(spec);
  bench.Obey();
  for (const TaskId id : {kChief0, kPs0}) {
    bench.See(id, Phase::kRunning, {});
    bench.seen.tasks.back().idle_seconds = 31;
  }
  bench.Pass(1);
  EXPECT_EQ(bench.phase(kPs0), TaskPhase::kRunning);  // parameter servers have nothing to say
  EXPECT_THAT(bench.Actions(), ElementsAre("stop chief-0 #1"));
  EXPECT_TRUE(bench.result.actions[0].hanging);
  bench.Obey();
  EXPECT_THAT(bench.Actions(), ElementsAre("start chief-0 #3"));
  EXPECT_FALSE(bench.result.status.tasks.at(kChief0).hanging);
  EXPECT_THAT(bench.result.status.failures.at(0).end.Describe(),
              HasSubstr("no sign of life for 31s"));
}

TEST(Reconcile, ATaskThatHungIsToldFromTheGangThatIsStoppedWithIt) {
  JobSpec spec = SpecOf({{TaskType::kWorker, 2}});
  spec.progress_timeout_seconds = 30;
  spec.restart_scope = RestartScope::kGang;
  Bench bench(spec);
  bench.Obey();
  bench.See(kWorker0, Phase::kRunning, {});
  bench.See(kWorker1, Phase::kRunning, {});
  bench.seen.tasks.back().idle_seconds = 31;
  bench.Pass(1);
  EXPECT_THAT(bench.Actions(), ElementsAre("stop worker-0 #1", "stop worker-1 #2"));
  EXPECT_FALSE(bench.result.actions[0].hanging);
  EXPECT_TRUE(bench.result.actions[1].hanging);
  bench.Obey();
  EXPECT_THAT(bench.result.status.tasks.at(kWorker1).last_end->Describe(),
              HasSubstr("no sign of life for 31s"));
}

TEST(Reconcile, TheFirstFailureIsTheCauseTheOthersFollow) {
  Bench bench(SpecOf({{TaskType::kWorker, 2}}, RestartPolicy::kNever));
  bench.Obey();
  bench.End(kWorker1, {.signal = 9});
  bench.End(kWorker0, {.exit_code = 1}, 20);
  const auto& failures = bench.result.status.failures;
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(TaskName(failures[0].task), "worker-1");
  EXPECT_FALSE(failures[0].follow_up);
  EXPECT_TRUE(failures[1].follow_up);
  EXPECT_THAT(bench.FailedMessage(), HasSubstr("worker-1: killed by SIGKILL"));
}

TEST(Reconcile, OldIncarnationsAreNotBelievedAndAreStopped) {
  Bench bench(SpecOf({{TaskType::kWorker, 1}}));
  bench.Obey();
  bench.End(kWorker0, {.exit_code = 1});
  bench.Pass(2);
  bench.Obey();
  bench.seen.tasks = {
      {.id = kWorker0, .incarnation = 1, .phase = Phase::kEnded, .end = {.exit_code = 0}}};
  bench.Pass(1);
  EXPECT_EQ(bench.phase(kWorker0), TaskPhase::kRunning);
  bench.seen.tasks = {{.id = kWorker0, .incarnation = 1, .phase = Phase::kRunning}};
  bench.Pass(1);
  EXPECT_THAT(bench.Actions(), ElementsAre("stop worker-0 #1"));
}

TEST(Reconcile, TimeToLiveDeletesTheJob) {
  JobSpec spec = SpecOf({{TaskType::kWorker, 1}});
  spec.ttl_seconds = 50;
  Bench bench(spec);
  bench.Obey();
  bench.End(kWorker0, {.exit_code = 0});
  EXPECT_EQ(bench.result.wake_after, 50);
  bench.Pass(49);
  EXPECT_THAT(bench.Actions(), ElementsAre());
  bench.Pass(1);
  ASSERT_EQ(bench.result.actions.size(), 1u);
  EXPECT_EQ(bench.result.actions[0].kind, Kind::kDeleteJob);
}

}  // namespace
}  // namespace muster::job
