// Which failures start what again, when, and how often.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/job/reconcile_test_support.h"

namespace muster::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Reconcile, ADisruptedTaskStartsAgainAndIsNotCounted) {
  for (const RestartScope scope : {RestartScope::kTask, RestartScope::kGang}) {
    JobSpec spec = GetSpec({{TaskType::kChief, 1}, {TaskType::kWorker, 2}});
    spec.restart_scope = scope;
    spec.restart_budget.per_task = 1;
    spec.restart_budget.backoff_seconds = 0;
    spec.backoff_limit = 2;
    Bench bench(spec);
    bench.Obey();
    for (int i = 1; i <= 100; ++i) {
      bench.End(kWorker1, {.exit_code = 137, .disrupted = true}, /*seconds=*/0);
      if (scope == RestartScope::kGang) bench.Obey(0);  // the others end
      EXPECT_EQ(bench.phase(kWorker1), TaskPhase::kStarting);
      bench.Obey(0);
      const TaskStatus& task = bench.result.status.tasks.at(kWorker1);
      EXPECT_EQ(task.disruptions, i);
      EXPECT_EQ(task.restarts, 0);
    }
    EXPECT_EQ(bench.job(), JobPhase::kActive);
    bench.End(kWorker1, {.exit_code = 137});
    EXPECT_EQ(bench.job(), JobPhase::kActive);  // the whole budget is there
  }
}

TEST(Reconcile, DisruptionsThatFollowEachOtherStartTheTaskAgainAfterGrowingPauses) {
  for (const RestartScope scope : {RestartScope::kTask, RestartScope::kGang}) {
    JobSpec spec = GetSpec({{TaskType::kChief, 1}, {TaskType::kWorker, 2}});
    spec.restart_scope = scope;
    spec.restart_budget = {.window_seconds = 100, .backoff_seconds = 2, .max_backoff_seconds = 5};
    Bench bench(spec);
    bench.Obey();
    for (const double pause : {0.0, 2.0, 4.0, 5.0, 5.0}) {
      bench.End(kWorker1, {.lost = true, .disrupted = true}, /*seconds=*/0);
      if (scope == RestartScope::kGang) bench.Obey(0);  // the others end
      if (pause > 0) {
        EXPECT_EQ(bench.phase(kWorker1), TaskPhase::kWaiting);
        EXPECT_EQ(bench.result.wake_after, pause);
        bench.Pass(pause);
      }
      EXPECT_EQ(bench.phase(kWorker1), TaskPhase::kStarting) << pause;
      bench.Obey(0);
    }
    EXPECT_EQ(bench.result.status.tasks.at(kWorker1).restarts, 0);
    bench.Pass(100);  // they were long ago
    bench.End(kWorker1, {.lost = true, .disrupted = true}, /*seconds=*/0);
    if (scope == RestartScope::kGang) bench.Obey(0);
    EXPECT_EQ(bench.phase(kWorker1), TaskPhase::kStarting);
  }
}

TEST(Reconcile, ADisruptionIsJudgedByWhatIsNotOfTheProgram) {
  using Rule = FailureRule::Action;
  JobSpec spec = GetSpec({{TaskType::kChief, 1}, {TaskType::kWorker, 2}}, RestartPolicy::kExitCode);
  spec.failure_policy = {{{}, {3}, {}, Rule::kFailJob}, {TaskType::kPs, {}, {}, Rule::kFailJob}};
  Bench bench(spec);
  bench.Obey();
  bench.End(kWorker1, {.exit_code = 3, .disrupted = true});  // neither the rule nor the policy
  EXPECT_EQ(bench.job(), JobPhase::kActive);
  bench.Obey();
  spec.failure_policy = {{TaskType::kWorker, {}, {}, Rule::kFailJob}};
  Bench named(spec);
  named.Obey();
  named.End(kWorker1, {.lost = true, .disrupted = true});
  EXPECT_EQ(named.job(), JobPhase::kFailed);
  Bench never(GetSpec({{TaskType::kChief, 1}, {TaskType::kWorker, 2}}, RestartPolicy::kNever));
  never.Obey();
  never.End(kWorker1, {.lost = true, .disrupted = true});  // it is started once at most
  EXPECT_EQ(never.job(), JobPhase::kFailed);
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
    Bench bench(GetSpec({{TaskType::kChief, 1}, {TaskType::kWorker, 2}}, each.policy));
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
  JobSpec spec = GetSpec({{TaskType::kWorker, 2}, {TaskType::kEvaluator, 1}});
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
  JobSpec spec = GetSpec({{TaskType::kChief, 1}, {TaskType::kWorker, 1}});
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
  JobSpec spec = GetSpec({{TaskType::kChief, 1}, {TaskType::kWorker, 2}}, RestartPolicy::kNever);
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

TEST(ReconcileRestart, ARestartInPlaceHasACauseAndCountsForTheBackoffLimit) {
  JobSpec spec = GetSpec({{TaskType::kWorker, 1}});
  spec.backoff_limit = 3;
  Bench bench(spec);
  bench.Obey();
  const auto restart = [&](int count, const TaskEnd& end) {
    bench.See(kWorker0, TaskObservation::Phase::kRunning, {});
    bench.seen.tasks.back().restarts_in_place = count;
    bench.seen.tasks.back().end_in_place = end;
    bench.Pass(200);
  };
  restart(2, {.exit_code = 7, .last_line = "KeyError"});
  ASSERT_EQ(bench.result.status.failures.size(), 1u);
  EXPECT_EQ(bench.result.status.failures[0].end.exit_code, 7);
  restart(2, {.exit_code = 8});  // it is seen once more
  EXPECT_EQ(bench.result.status.failures.size(), 1u);
  // A new incarnation does not begin to count anew.
  bench.End(kWorker0, {.exit_code = 143, .disrupted = true}, 0);
  EXPECT_EQ(bench.result.status.tasks.at(kWorker0).restarts, 2);
  bench.Obey();
  restart(1, {.exit_code = 9, .last_line = "ValueError"});
  EXPECT_THAT(bench.FailedMessage(),
              HasSubstr("for the 3rd time, backoffLimit 3; the last failure was worker-0: exit "
                        "code 9, with 'ValueError'."));
  bench.End(kWorker0, {.lost = true, .disrupted = true, .detail = "its pod was deleted"});
  EXPECT_EQ(bench.result.status.tasks.at(kWorker0).last_end->exit_code, 9);
}

}  // namespace
}  // namespace muster::job
