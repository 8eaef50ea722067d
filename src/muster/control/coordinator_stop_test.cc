// Jobs whose tasks are stopped: by their user, for a while, because they hang.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/control/test_coordinator.h"

namespace muster::control {
namespace {

TEST_F(CoordinatorTest, CancelStopsInGoodOrder) {
  Begin(Workers(2));
  RunBoth();
  coordinator_->Cancel("stopped by muster stop");
  Pass();
  for (const TaskId task : {kWorker0, kWorker1}) EXPECT_TRUE(OrdersFor(task).stop);
  EXPECT_TRUE(launcher_.kills.empty());
  SayEnded(kWorker0, {.signal = 15});
  SayEnded(kWorker1, {.signal = 15});
  EXPECT_TRUE(coordinator_->finished());
  EXPECT_EQ(coordinator_->status().failure_message, "stopped by muster stop");
  EXPECT_TRUE(coordinator_->status().failures.empty());
}

TEST_F(CoordinatorTest, WhoWasStoppedTogetherWithItsAgentsHasLostNone) {
  Begin(Workers(2));
  RunBoth();
  Advance(1000);  // no pass came meanwhile
  EXPECT_TRUE(launcher_.kills.empty());
  Advance(8);
  Advance(4);  // and now they are silent
  EXPECT_EQ(launcher_.kills.size(), 2);
}

TEST_F(CoordinatorTest, APausedJobStandsStillUntilItContinues) {
  Begin(Workers(2));
  RunBoth();
  const int64_t seen = OrdersFor(kWorker0).version;
  coordinator_->SetPaused(true);
  EXPECT_TRUE(OrdersFor(kWorker0).pause);
  EXPECT_GT(OrdersFor(kWorker0).version, seen);
  EXPECT_TRUE(OrdersFromJson(ToJson(OrdersFor(kWorker0)))->pause);
  for (int i = 0; i < 10; ++i) Advance(6);
  EXPECT_TRUE(launcher_.kills.empty());
  coordinator_->SetPaused(false);
  EXPECT_FALSE(OrdersFor(kWorker0).pause);
  Pass();
  EXPECT_TRUE(launcher_.kills.empty());
}

TEST_F(CoordinatorTest, AFullDiskStopsNoStop) {
  Begin(Workers(2));
  RunBoth();
  files_.FillDiskAfter(0);
  coordinator_->Cancel("stopped by muster stop");
  const auto pass = coordinator_->Pass();
  EXPECT_EQ(pass.status().code(), absl::StatusCode::kResourceExhausted) << pass.status();
  for (const TaskId task : {kWorker0, kWorker1}) EXPECT_TRUE(OrdersFor(task).stop);
  for (const TaskId task : {kWorker0, kWorker1}) {
    AgentReport report = Report(task, AgentReport::State::kEnded);
    report.end = job::TaskEnd{.signal = 15};
    coordinator_->Take(report);
  }
  EXPECT_FALSE(coordinator_->Pass().ok());
  EXPECT_FALSE(coordinator_->finished()) << "nothing of it is written down";
  files_.FillDiskAfter(1 << 20);
  Pass();
  EXPECT_TRUE(coordinator_->finished());
  EXPECT_EQ(coordinator_->status().failure_message, "stopped by muster stop");
}

TEST_F(CoordinatorTest, AFullDiskStartsAndStopsNothingByItself) {
  Begin(Workers(2));
  RunBoth();
  files_.FillDiskAfter(0);
  AgentReport report = Report(kWorker0, AgentReport::State::kEnded);
  report.end = job::TaskEnd{.exit_code = 1};
  coordinator_->Take(report);
  EXPECT_FALSE(coordinator_->Pass().ok());
  EXPECT_EQ(launcher_.processes.size(), 2);
  EXPECT_FALSE(OrdersFor(kWorker1).stop);
  files_.FillDiskAfter(1 << 20);
  Pass();
  Advance(10);
  EXPECT_EQ(launcher_.processes.size(), 3) << "one start more, once it can be remembered";
}

TEST_F(CoordinatorTest, AnAgentThatDoesNotObeyIsKilled) {
  Begin(Workers(1));
  Say(kWorker0, AgentReport::State::kWaiting);
  Say(kWorker0, AgentReport::State::kRunning);
  coordinator_->Cancel("enough");
  Pass();
  for (int i = 0; i < 4; ++i) {
    clock_.Advance(9);
    Say(kWorker0, AgentReport::State::kRunning);
  }
  EXPECT_THAT(launcher_.kills, ::testing::Contains("worker-0.1"));
  EXPECT_TRUE(coordinator_->finished());
}

TEST_F(CoordinatorTest, ASuspendedJobStaysSoUntilItIsResumed) {
  Begin(Workers(1));
  Say(kWorker0, AgentReport::State::kWaiting);
  Say(kWorker0, AgentReport::State::kRunning);
  ASSERT_TRUE(coordinator_->SetSuspended(true).ok());
  Restart();  // at once: it is written down
  Pass();
  EXPECT_TRUE(Say(kWorker0, AgentReport::State::kRunning).stop);
  SayEnded(kWorker0, {.signal = 15});
  Advance(100);
  EXPECT_EQ(coordinator_->status().phase, job::JobPhase::kSuspended);
  EXPECT_EQ(launcher_.processes.size(), 1);
  ASSERT_TRUE(coordinator_->SetSuspended(false).ok());
  Pass();
  EXPECT_EQ(launcher_.processes.size(), 2);
  EXPECT_EQ(coordinator_->status().tasks.at(kWorker0).restarts, 0);
  coordinator_->Cancel("enough");
  Pass();
  EXPECT_TRUE(absl::IsFailedPrecondition(coordinator_->SetSuspended(true)));
}

TEST_F(CoordinatorTest, WhatIsSeenOfAnEvaluatorAndOfProgressCounts) {
  using Newest = job::EvaluatorWork::Newest;
  constexpr TaskId kEvaluator0{TaskType::kEvaluator, 0};
  job::JobSpec spec = Workers(1);
  spec.replicas[TaskType::kEvaluator] = {1, job::RestartPolicy::kOnFailure,
                                         job::TemplateFor({"program"})};
  Begin(spec);
  for (const TaskId task : {kWorker0, kEvaluator0}) Say(task, AgentReport::State::kWaiting);
  AgentReport trains = Report(kWorker0, AgentReport::State::kRunning);
  trains.saved = true;
  Say(trains);
  EXPECT_TRUE(coordinator_->status().progressed);
  AgentReport works = Report(kEvaluator0, AgentReport::State::kRunning);
  works.work = job::EvaluatorWork{.newest = Newest::kNotEvaluated, .still_seconds = 100};
  Say(works);
  SayEnded(kWorker0, {.exit_code = 0});
  for (int i = 0; i < 20; ++i) {  // long past the finish timeout
    clock_.Advance(8);
    ++works.sequence;
    EXPECT_FALSE(Say(works).stop);
  }
  EXPECT_EQ(coordinator_->Describe()["waiting_for"], "evaluator-0 to finish its evaluations");
  works.sequence += 10;
  works.work->newest = Newest::kEvaluated;
  const auto read = ReportFromJson(ToJson(works));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, works);
  EXPECT_TRUE(Say(*read).stop);
}

TEST_F(CoordinatorTest, WhatAHangingTaskDidIsAskedForAndKept) {
  job::JobSpec spec = Workers(2);
  spec.progress_timeout_seconds = 5;
  spec.model_dir = "/model";
  Begin(spec);
  RunBoth();
  EXPECT_EQ(coordinator_->OrdersFor(kWorker1, 2).start->model_dir, "/model");
  EXPECT_EQ(coordinator_->OrdersFor(kWorker1, 2).start->progress_seconds, 5);
  AgentReport report = Report(kWorker1, AgentReport::State::kRunning);
  report.step = 12;
  report.counts = {{"trained", 384}};
  report.idle_seconds = 6;
  const AgentOrders orders = Say(report);
  EXPECT_TRUE(orders.stop);
  EXPECT_TRUE(orders.diagnose);
  EXPECT_EQ(coordinator_->Describe()["tasks"][1]["step"], 12);
  for (int i = 0; i < 5; ++i) {  // the look takes its time
    clock_.Advance(8);
    for (const TaskId task : {kWorker0, kWorker1}) Say(task, AgentReport::State::kRunning);
  }
  EXPECT_TRUE(launcher_.kills.empty());
  report = Report(kWorker1, AgentReport::State::kEnded);
  report.end = job::TaskEnd{.signal = 15};
  report.diagnosis = {"it waits"};
  Say(report);
  Advance(2);
  Restart();
  Pass();
  const Json failure = coordinator_->Describe()["failures"][0];
  EXPECT_EQ(failure["text"], "no sign of life for 6s");
  EXPECT_EQ(failure["diagnosis"][0], "it waits");
}

}  // namespace
}  // namespace muster::control
