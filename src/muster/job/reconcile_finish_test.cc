// What is asked of a job's other tasks before it has succeeded, and how long they may take.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/job/reconcile_test_support.h"

namespace muster::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Newest = EvaluatorWork::Newest;

TaskEnd Done() { return {.exit_code = 0}; }
TaskEnd Broken() { return {.exit_code = 1}; }

TEST(ReconcileFinish, AllWorkersAreNeededWhereTheSpecSaysSo) {
  JobSpec spec = GetSpec({{TaskType::kWorker, 2}});
  spec.all_workers = true;
  spec.finish_timeout_seconds = 60;
  spec.restart_budget.per_task = 1;
  Bench bench(spec);
  bench.Obey();
  bench.End(kWorker0, Done());
  bench.Pass(1000);  // the finish timeout does not run
  EXPECT_EQ(bench.job(), JobPhase::kActive);
  EXPECT_THAT(bench.Actions(), IsEmpty());
  bench.End(kWorker1, Broken());
  bench.Obey();
  bench.End(kWorker1, Broken());
  EXPECT_THAT(bench.FailedMessage(), HasSubstr("worker-1: exit code 1"));
}

TEST(ReconcileFinish, AllWorkersAreThoseThatWereNotGivenUp) {
  JobSpec spec = GetSpec({{TaskType::kWorker, 3}});
  spec.all_workers = true;
  spec.min_workers = 2;
  spec.restart_budget.per_task = 0;
  Bench bench(spec);
  bench.Obey();
  bench.End(kWorker1, {.signal = 9});
  bench.End(kWorker0, Done());
  EXPECT_EQ(bench.job(), JobPhase::kActive);
  bench.End({TaskType::kWorker, 2}, Done());
  EXPECT_EQ(bench.job(), JobPhase::kSucceeded);
  EXPECT_THAT(Shortfalls(bench.result.status), ElementsAre(HasSubstr("worker-1 failed (given up")));
}

TEST(ReconcileFinish, ByTfJobsRuleTheSuccessNamesWhoFailed) {
  JobSpec spec = GetSpec({{TaskType::kWorker, 2}}, RestartPolicy::kOnFailure);
  spec.finish_timeout_seconds = 60;
  Bench bench(spec);
  bench.Obey();
  bench.End(kWorker0, Done());
  bench.End(kWorker1, Broken());
  EXPECT_EQ(bench.job(), JobPhase::kSucceeded);
  EXPECT_EQ(Although(bench.result.status), ", although worker-1 failed (exit code 1)");
  EXPECT_THAT(bench.result.status.FindCondition("Succeeded")->message,
              HasSubstr("worker-0 has succeeded, although worker-1 failed (exit code 1)."));
}

TEST(ReconcileFinish, AWorkerThatWaitsForItsNextStartHasFailed) {
  JobSpec spec = GetSpec({{TaskType::kWorker, 2}});
  spec.finish_timeout_seconds = 60;
  Bench bench(spec);
  bench.Obey();
  bench.End(kWorker1, Broken(), 0);
  bench.Obey(0);
  bench.End(kWorker1, Broken(), 0);  // the second restart is later
  bench.End(kWorker0, Done(), 0);
  EXPECT_EQ(bench.job(), JobPhase::kSucceeded);
  EXPECT_THAT(Although(bench.result.status), HasSubstr("worker-1 failed"));
}

class EvaluatorTest : public testing::TestWithParam<bool> {
 protected:
  // A job whose chief has succeeded, and whose evaluator runs.
  static Bench Finishing(bool needs_evaluator) {
    JobSpec spec = GetSpec({{TaskType::kChief, 1}, {TaskType::kEvaluator, 1}});
    spec.finish_timeout_seconds = 60;
    spec.needs_evaluator = needs_evaluator;
    Bench bench(spec);
    bench.Obey();
    bench.End(kChief0, Done());
    return bench;
  }
  // Whether it is stopped when this is seen of it.
  static bool IsStopped(Bench bench, EvaluatorWork work) {
    bench.SeeWork(work);
    bench.Pass(0);
    return bench.phase(kEvaluator0) == TaskPhase::kStopping;
  }
};

TEST_P(EvaluatorTest, IsNotStoppedWhileItMayHaveWork) {
  Bench bench = Finishing(GetParam());
  bench.Pass(400);
  EXPECT_EQ(bench.phase(kEvaluator0), TaskPhase::kRunning);
  EXPECT_GT(bench.result.wake_after, 0);
  EXPECT_THAT(bench.result.waiting_for, HasSubstr("evaluator-0 to finish its evaluations"));
  EXPECT_FALSE(IsStopped(bench, {.newest = Newest::kNotEvaluated, .still_seconds = 400}));
  EXPECT_FALSE(IsStopped(bench, {.newest = Newest::kUnknown, .idle_seconds = 899}));
  EXPECT_FALSE(IsStopped(bench, {.newest = Newest::kEvaluated, .still_seconds = 59}));
  EXPECT_TRUE(IsStopped(bench, {.newest = Newest::kEvaluated, .still_seconds = 60}));
  EXPECT_TRUE(IsStopped(bench, {.newest = Newest::kUnknown, .idle_seconds = 900}));
  bench.End(kEvaluator0, Done());
  EXPECT_EQ(bench.job(), JobPhase::kSucceeded);
  EXPECT_THAT(Shortfalls(bench.result.status), IsEmpty());
}

TEST_P(EvaluatorTest, ThatHasDoneItsWorkIsNotCutOff) {
  Bench bench = Finishing(GetParam());
  bench.SeeWork({.newest = Newest::kEvaluated, .still_seconds = 60});
  bench.Pass(60);
  bench.Obey();
  EXPECT_EQ(bench.job(), JobPhase::kSucceeded);
  EXPECT_TRUE(bench.result.status.FindCondition("Succeeded")->is_true);
  EXPECT_THAT(Shortfalls(bench.result.status), IsEmpty());
}

TEST_P(EvaluatorTest, ThatIsCutOffFailsAJobThatNeedsIt) {
  const bool needs = GetParam();
  for (const bool by_user : {true, false}) {
    Bench bench = Finishing(needs);
    EXPECT_EQ(bench.result.status.FindCondition("Succeeded") == nullptr, needs);
    bench.SeeWork({.newest = Newest::kNotEvaluated, .idle_seconds = by_user ? 0.0 : 900.0});
    if (by_user) bench.seen.cancelled = "stopped by Ctrl-C";
    bench.Pass(60);
    EXPECT_EQ(bench.phase(kEvaluator0), TaskPhase::kStopping);
    bench.Obey();
    EXPECT_EQ(bench.job(), needs ? JobPhase::kFailed : JobPhase::kSucceeded);
    EXPECT_THAT(Although(bench.result.status), HasSubstr("although evaluator-0 was cut off ("));
    const Condition* const end = bench.result.status.FindCondition(needs ? "Failed" : "Succeeded");
    ASSERT_NE(end, nullptr);
    EXPECT_THAT(end->message, HasSubstr("although evaluator-0 was cut off ("));
  }
}

TEST_P(EvaluatorTest, ThatFailsAfterTheTrainingStartsAgainWhereItIsNeeded) {
  const bool needs = GetParam();
  Bench bench = Finishing(needs);
  bench.End(kEvaluator0, {.signal = 9});
  if (!needs) {
    EXPECT_EQ(bench.job(), JobPhase::kSucceeded);
    EXPECT_THAT(Although(bench.result.status), HasSubstr("evaluator-0 failed (killed by SIGKILL"));
    return;
  }
  EXPECT_EQ(bench.phase(kEvaluator0), TaskPhase::kStarting);
  bench.Obey();
  bench.End(kEvaluator0, {.exit_code = 0});
  EXPECT_EQ(bench.job(), JobPhase::kSucceeded);
  EXPECT_TRUE(bench.result.status.FindCondition("Succeeded")->is_true);
}

INSTANTIATE_TEST_SUITE_P(NeedsIt, EvaluatorTest, testing::Bool());

TEST(ReconcileFinish, ANeededEvaluatorThatHasSpentItsRestartsFailsTheJob) {
  JobSpec spec = GetSpec({{TaskType::kChief, 1}, {TaskType::kEvaluator, 1}});
  spec.finish_timeout_seconds = 60;
  spec.needs_evaluator = true;
  spec.restart_budget.per_task = 0;
  Bench bench(spec);
  bench.Obey();
  bench.End(kChief0, Done());
  bench.End(kEvaluator0, Broken());
  EXPECT_EQ(bench.job(), JobPhase::kFailed);
  EXPECT_THAT(bench.FailedMessage(), HasSubstr("the training has succeeded, although evaluator-0 "
                                               "failed (exit code 1)"));
}

TEST(ReconcileFinish, WhatHasNotBegunIsStoppedWhenTheJobHasEnded) {
  for (const bool succeeds : {true, false}) {
    Bench bench(GetSpec({{TaskType::kChief, 1}, {TaskType::kWorker, 2}}, RestartPolicy::kNever));
    bench.See(kChief0, TaskObservation::Phase::kRunning, {});
    bench.See(kWorker0, TaskObservation::Phase::kRunning, {});
    bench.Pass(1);
    bench.End(kChief0, succeeds ? Done() : Broken());
    EXPECT_EQ(bench.job(), succeeds ? JobPhase::kSucceeded : JobPhase::kFailed);
    EXPECT_EQ(bench.phase(kWorker0), TaskPhase::kRunning);  // cleanPodPolicy None
    EXPECT_THAT(bench.Actions(), ElementsAre("stop worker-1 #3"));
    bench.Obey();
    EXPECT_EQ(bench.phase(kWorker1), TaskPhase::kStopped);
    EXPECT_THAT(bench.Actions(), IsEmpty());
  }
}

TEST(ReconcileFinish, AStopOfAJobThatHasEndedEndsWhatItLeft) {
  Bench bench(GetSpec({{TaskType::kWorker, 1}, {TaskType::kPs, 1}}, RestartPolicy::kNever));
  bench.Obey();
  bench.End(kWorker0, Broken());
  EXPECT_EQ(bench.job(), JobPhase::kFailed);
  EXPECT_THAT(bench.Actions(), IsEmpty());
  bench.seen.cancelled = "stopped by a person";
  bench.Pass(1);
  EXPECT_THAT(bench.Actions(), ElementsAre("stop ps-0 #1"));
  bench.Obey();
  EXPECT_EQ(bench.phase(kPs0), TaskPhase::kStopped);
  EXPECT_EQ(bench.job(), JobPhase::kFailed);
  EXPECT_THAT(bench.FailedMessage(), HasSubstr("worker-0: exit code 1"));
}

}  // namespace
}  // namespace muster::job
