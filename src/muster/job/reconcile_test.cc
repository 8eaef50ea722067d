#include "muster/job/reconcile.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/job/reconcile_test_support.h"

namespace muster::job {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Phase = TaskObservation::Phase;
using Kind = Action::Kind;

TEST(Reconcile, StartsEachTaskAndRepeatsUntilItShows) {
  Bench bench(GetSpec({{TaskType::kChief, 1}, {TaskType::kWorker, 2}}));
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
  JobSpec spec = GetSpec({{TaskType::kChief, 1},
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
  bench.SeeWork({.newest = EvaluatorWork::Newest::kEvaluated, .still_seconds = 100});
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

TEST(Reconcile, DeadlineAndBackoffLimitStopAllWhateverThePolicy) {
  JobSpec spec = GetSpec({{TaskType::kChief, 1}, {TaskType::kPs, 1}});
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
  EXPECT_THAT(limited.FailedMessage(), HasSubstr("start again for the 1st time, backoffLimit 1"));
  EXPECT_EQ(limited.result.status.tasks.at(kPs0).restarts, 0) << "that start is not made";
}

TEST(Reconcile, SuspendStopsAllAndResumeStartsAgainWithoutSpendingRestarts) {
  Bench bench(GetSpec({{TaskType::kChief, 1}, {TaskType::kWorker, 1}}));
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
  Bench first(GetSpec({{TaskType::kWorker, 2}}));
  first.Obey();
  first.End(kWorker1, {.exit_code = 0});
  EXPECT_EQ(first.job(), JobPhase::kActive);
  first.End(kWorker0, {.exit_code = 0});
  EXPECT_EQ(first.job(), JobPhase::kSucceeded);

  JobSpec spec = GetSpec({{TaskType::kWorker, 2}});
  spec.all_workers = true;
  Bench all(spec);
  all.Obey();
  all.End(kWorker0, {.exit_code = 0});
  EXPECT_EQ(all.job(), JobPhase::kActive);
  all.End(kWorker1, {.exit_code = 0});
  EXPECT_EQ(all.job(), JobPhase::kSucceeded);
}

TEST(Reconcile, DynamicWorkersMayFailAndComeAndGo) {
  JobSpec spec = GetSpec({{TaskType::kWorker, 2}}, RestartPolicy::kNever);
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
  bench.End(kWorker0, {.exit_code = 1});  // nobody is left: it may not wait indefinitely
  EXPECT_EQ(bench.job(), JobPhase::kFailed);
}

TEST(Reconcile, AWorkerThatTheJobCanDoWithoutIsGivenUp) {
  JobSpec spec = GetSpec({{TaskType::kChief, 1}, {TaskType::kWorker, 2}});
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
  JobSpec spec = GetSpec({{TaskType::kChief, 1}, {TaskType::kPs, 1}});
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
  JobSpec spec = GetSpec({{TaskType::kWorker, 2}});
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
  Bench bench(GetSpec({{TaskType::kWorker, 2}}, RestartPolicy::kNever));
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

TEST(Reconcile, ATaskThatIsKilledDoesNotFollowAnother) {
  for (const TaskEnd& end : {TaskEnd{.signal = 9}, TaskEnd{.exit_code = 137}, TaskEnd{.lost = true},
                             TaskEnd{.exit_code = 1, .disrupted = true}}) {
    Bench bench(GetSpec({{TaskType::kWorker, 2}}));
    bench.Obey();
    bench.End(kWorker1, {.signal = 9});
    bench.End(kWorker0, end, 30);
    ASSERT_EQ(bench.result.status.failures.size(), 2u);
    EXPECT_FALSE(bench.result.status.failures[1].follow_up) << end.Describe();
  }
}

TEST(Reconcile, OldIncarnationsAreNotBelievedAndAreStopped) {
  Bench bench(GetSpec({{TaskType::kWorker, 1}}));
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
  JobSpec spec = GetSpec({{TaskType::kWorker, 1}});
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

TEST(Reconcile, AWorkerThatIsAskedForAgainWhileItStopsStartsAgain) {
  Bench bench(GetSpec({{TaskType::kWorker, 3}}));
  bench.Obey();
  const auto scale = [&](int workers) {
    bench.spec.replicas[TaskType::kWorker].replicas = workers;
    bench.Pass(1);
  };
  scale(1);
  EXPECT_THAT(bench.Actions(), ElementsAre("stop worker-1 #2", "stop worker-2 #3"));
  scale(2);
  bench.Obey();
  EXPECT_EQ(bench.phase(kWorker1), TaskPhase::kStarting);
  EXPECT_THAT(bench.Actions(), ElementsAre("start worker-1 #4"));
  EXPECT_EQ(bench.result.status.tasks.size(), 2u);
  // It has ended by the time that it is asked for again.
  bench.Obey();
  scale(1);
  bench.See(kWorker1, Phase::kEnded, {.signal = 15});
  scale(2);
  EXPECT_EQ(bench.phase(kWorker1), TaskPhase::kStarting);
  // So has a job that an older version left without the task.
  bench.result.status.tasks.at(kWorker1).phase = TaskPhase::kStopped;
  bench.result.status.tasks.at(kWorker1).stop_reason = "scaled down";
  bench.Pass(1);
  EXPECT_EQ(bench.phase(kWorker1), TaskPhase::kStarting);
}

TEST(TaskEndTest, AReasonStandsInPlaceOfThatItWasLost) {
  EXPECT_EQ(TaskEnd{.lost = true}.Describe(), "lost: nothing was heard of it any more");
  const TaskEnd known = {.lost = true, .detail = "its slot container_2 ended with code -104"};
  EXPECT_EQ(known.Describe(), "its slot container_2 ended with code -104");
}

}  // namespace
}  // namespace muster::job
