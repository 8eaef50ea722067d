#include "muster/control/coordinator.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/control/status_json.h"
#include "muster/control/test_coordinator.h"

namespace muster::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(CoordinatorTest, NobodyStartsBeforeAllHaveReported) {
  Begin(Workers(2));
  EXPECT_EQ(launcher_.requests.size(), 2);
  EXPECT_FALSE(Say(kWorker0, AgentReport::State::kWaiting).start.has_value());
  const AgentOrders second = Say(kWorker1, AgentReport::State::kWaiting);
  ASSERT_TRUE(second.start.has_value());
  EXPECT_THAT(second.start->command, ElementsAre("program", "--index", "1"));
  const auto& [name, tf_config] = second.start->env.back();
  EXPECT_EQ(name, "TF_CONFIG");
  EXPECT_EQ(tf_config,
            "{\"cluster\":{\"worker\":[\"127.0.0.1:9000\",\"127.0.0.1:9001\"]},"
            "\"task\":{\"type\":\"worker\",\"index\":1},\"environment\":\"cloud\"}");
  EXPECT_TRUE(coordinator_->OrdersFor(kWorker0, 1).start.has_value());
}

TEST_F(CoordinatorTest, AnAgentThatReportedIsNotAskedForAgain) {
  Begin(Workers(2));
  Say(kWorker0, AgentReport::State::kWaiting);
  launcher_.requests.clear();
  Pass();
  ASSERT_EQ(launcher_.requests.size(), 1);  // it may have been lost
  EXPECT_EQ(launcher_.requests[0].task, kWorker1);
}

TEST_F(CoordinatorTest, WorkersOfADynamicJobDoNotWaitForEachOther) {
  job::JobSpec spec = Workers(2);
  spec.dynamic_workers = true;
  spec.replicas[TaskType::kPs] = {1, job::RestartPolicy::kOnFailure, job::TemplateFor({"program"})};
  Begin(spec);
  EXPECT_FALSE(Say(kWorker0, AgentReport::State::kWaiting).start.has_value());
  Say({TaskType::kPs, 0}, AgentReport::State::kWaiting);
  EXPECT_TRUE(Say(kWorker0, AgentReport::State::kWaiting).start.has_value());
}

TEST_F(CoordinatorTest, AnEvaluatorIsNotWaitedForUnlessItIsOfTheCluster) {
  for (const bool in_cluster : {false, true}) {
    options_.tf_config.evaluator_in_cluster = in_cluster;
    job::JobSpec spec = Workers(1);
    spec.replicas[TaskType::kEvaluator] = {1, job::RestartPolicy::kOnFailure,
                                           job::TemplateFor({"program"})};
    launcher_.processes.clear();
    ASSERT_TRUE(files_.RemoveAll("job").ok());
    ASSERT_TRUE(files_.MakeFolders("job").ok());
    Begin(spec);
    EXPECT_NE(Say(kWorker0, AgentReport::State::kWaiting).start.has_value(), in_cluster);
  }
}

TEST_F(CoordinatorTest, TheVersionOfOrdersIsKnownWithoutThem) {
  Begin(Workers(2));
  RunBoth();
  coordinator_->Cancel("enough");
  Pass();
  for (const int64_t incarnation : {1, 7}) {
    EXPECT_EQ(coordinator_->OrdersVersion(kWorker0, incarnation),
              coordinator_->OrdersFor(kWorker0, incarnation).version);
  }
}

TEST_F(CoordinatorTest, AJobOfItsWorkersEndsWell) {
  Begin(Workers(2));
  RunBoth();
  EXPECT_EQ(GetPhase(kWorker1), TaskPhase::kRunning);
  EXPECT_TRUE(SayEnded(kWorker1, {.exit_code = 0}).end_taken);
  EXPECT_TRUE(SayEnded(kWorker0, {.exit_code = 0}).end_taken);
  EXPECT_TRUE(coordinator_->finished());
  EXPECT_EQ(coordinator_->status().phase, job::JobPhase::kSucceeded);
}

TEST_F(CoordinatorTest, WhatIsDoneWasWrittenDownBefore) {
  launcher_.before_act = [this] {
    const auto read = ReadJournal(files_, kJournalPath);
    ASSERT_TRUE(read.ok()) << read.status();
    const auto status = StatusFromJson(read->state["status"], "journal");
    ASSERT_TRUE(status.ok());
    EXPECT_EQ(status->tasks.at(kWorker0).phase, TaskPhase::kStarting);
  };
  Begin(Workers(1));
  EXPECT_EQ(launcher_.requests.size(), 1);
}

TEST_F(CoordinatorTest, AFullDiskStartsNothingUntilThereIsRoom) {
  ASSERT_TRUE(files_.RemoveAll("job").ok());
  coordinator_ = *Coordinator::New(Workers(1), options_, Environment());
  EXPECT_FALSE(coordinator_->Pass().ok());
  EXPECT_TRUE(launcher_.requests.empty());
  ASSERT_TRUE(files_.MakeFolders("job").ok());
  Pass();
  EXPECT_EQ(launcher_.requests.size(), 1);
}

TEST_F(CoordinatorTest, AFailedTaskStartsAgainOnItsPort) {
  Begin(Workers(2));
  RunBoth();
  SayEnded(kWorker1, {.signal = 9});
  Advance(2);
  const StartRequest& again = launcher_.requests.back();
  EXPECT_EQ(again.task, kWorker1);
  EXPECT_EQ(again.incarnation, 3);
  EXPECT_EQ(again.port, 9001);
  EXPECT_TRUE(again.port_required);
  EXPECT_TRUE(Say(kWorker1, AgentReport::State::kWaiting).start.has_value());
  EXPECT_EQ(coordinator_->Describe()["failures"][0]["last_lines"][0], "last words");
}

TEST_F(CoordinatorTest, AfterAGangsEndNobodyStartsBeforeAllHaveReportedAgain) {
  job::JobSpec spec = Workers(2);
  spec.restart_scope = job::RestartScope::kGang;
  Begin(spec);
  RunBoth();
  SayEnded(kWorker1, {.signal = 9});
  EXPECT_TRUE(coordinator_->OrdersFor(kWorker0, 1).stop);
  SayEnded(kWorker0, {.signal = 15});
  Advance(2);
  EXPECT_FALSE(launcher_.requests.back().port_required);
  EXPECT_FALSE(Say(kWorker0, AgentReport::State::kWaiting).start.has_value());
  EXPECT_TRUE(Say(kWorker1, AgentReport::State::kWaiting).start.has_value());
}

TEST_F(CoordinatorTest, ASilentAgentIsKilledAndItsTaskStartsAgain) {
  Begin(Workers(2));
  RunBoth();
  clock_.Advance(8);
  Say(kWorker0, AgentReport::State::kRunning);
  Advance(4);
  EXPECT_THAT(launcher_.kills, ElementsAre("worker-1.2"));
  Pass();
  const auto& failure = coordinator_->status().failures.at(0);
  EXPECT_EQ(failure.task, kWorker1);
  EXPECT_THAT(failure.end.Describe(), HasSubstr("its agent was silent for 10s"));
  EXPECT_EQ(GetPhase(kWorker0), TaskPhase::kRunning);
}

TEST_F(CoordinatorTest, TheRendezvousDeadlineNamesWhoIsMissingAndWhatTheOthersSaid) {
  job::JobSpec spec = Workers(2);
  spec.restart_budget.per_task = 0;
  Begin(spec);
  Say(kWorker0, AgentReport::State::kWaiting);
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(6.1);
    Say(kWorker0, AgentReport::State::kWaiting);
  }
  Pass();
  EXPECT_EQ(coordinator_->status().phase, job::JobPhase::kFailing);
  EXPECT_THAT(coordinator_->status().failure_message,
              HasSubstr("rendezvous: worker-1 did not report within 1m; of those that wait, "
                        "worker-0 at 127.0.0.1:9000 says 'waits'"));
}

TEST_F(CoordinatorTest, ARendezvousWithoutALimitWaits) {
  options_.rendezvous_seconds = 0;
  Begin(Workers(2));
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(6.1);
    Say(kWorker0, AgentReport::State::kWaiting);
  }
  Pass();
  EXPECT_TRUE(coordinator_->status().failures.empty());
}

TEST_F(CoordinatorTest, ARestartedCoordinatorContinuesWithTheTasksThatRun) {
  Begin(Workers(2));
  RunBoth();
  Restart();
  Pass();
  EXPECT_TRUE(launcher_.kills.empty());
  EXPECT_EQ(launcher_.processes.size(), 2);
  EXPECT_FALSE(Say(kWorker0, AgentReport::State::kRunning).stop);
  SayEnded(kWorker0, {.exit_code = 0});
  SayEnded(kWorker1, {.exit_code = 0});
  EXPECT_EQ(coordinator_->status().phase, job::JobPhase::kSucceeded);
}

TEST_F(CoordinatorTest, AnAdoptedAgentThatNeverReportsIsKilled) {
  Begin(Workers(2));
  RunBoth();
  Restart();
  Say(kWorker0, AgentReport::State::kRunning);
  Advance(8);
  Say(kWorker0, AgentReport::State::kRunning);
  Advance(4);
  EXPECT_THAT(launcher_.kills, ElementsAre("worker-1.2"));
}

TEST_F(CoordinatorTest, OrdersOfALaterCoordinatorAreNewerThanThoseOfAnEarlierOne) {
  Begin(Workers(1));
  Say(kWorker0, AgentReport::State::kWaiting);
  const int64_t seen = Say(kWorker0, AgentReport::State::kRunning).version;
  ASSERT_TRUE(coordinator_->Write().ok());
  for (int i = 0; i < 2; ++i) {
    Restart();
    ASSERT_TRUE(coordinator_->Write().ok());
  }
  EXPECT_GT(Say(kWorker0, AgentReport::State::kRunning).version, seen);
}

TEST_F(CoordinatorTest, AnEndInWritingIsFoundByARestartedCoordinator) {
  Begin(Workers(2));
  RunBoth();
  launcher_.processes[{kWorker0, 1}] = {.alive = false, .written = job::TaskEnd{.exit_code = 0}};
  launcher_.processes[{kWorker1, 2}] = {.alive = false, .written = job::TaskEnd{.exit_code = 0}};
  Restart();
  Pass();
  EXPECT_EQ(coordinator_->status().phase, job::JobPhase::kSucceeded);
}

TEST_F(CoordinatorTest, AnEarlierIncarnationIsToldToGo) {
  Begin(Workers(1));
  const AgentReport old = Report(kWorker0, AgentReport::State::kRunning);
  launcher_.processes[{kWorker0, 1}].alive = false;
  Pass();
  Advance(2);
  EXPECT_EQ(coordinator_->status().tasks.at(kWorker0).incarnation, 2);
  const AgentOrders orders = Say(old);
  EXPECT_TRUE(orders.stop);
  EXPECT_EQ(orders.grace_seconds, 0);
  EXPECT_FALSE(Report(kWorker0, AgentReport::State::kWaiting).end.has_value());
}

TEST_F(CoordinatorTest, AReportThatComesLateChangesNothing) {
  Begin(Workers(2));
  const AgentReport early = Report(kWorker0, AgentReport::State::kWaiting);
  RunBoth();
  Say(early);
  EXPECT_EQ(GetPhase(kWorker0), TaskPhase::kRunning);
  EXPECT_EQ(coordinator_->Describe()["tasks"][0]["phase"], "running");
}

TEST_F(CoordinatorTest, CheckpointsThatVanishWhileATaskRestartsAreReportedByTaskAndStep) {
  job::JobSpec spec = Workers(2);
  spec.model_dir = "/model";
  Begin(spec);
  RunBoth();
  const auto say_lost = [this](TaskId task) {
    AgentReport report = Report(task, AgentReport::State::kRunning);
    report.lost_step = 1200;
    Say(report);
  };
  const auto losses = [this] { return coordinator_->Describe()["lost_checkpoints"]; };
  say_lost(kWorker1);
  EXPECT_TRUE(losses().empty()) << "what goes at the first start is meant to go";
  SayEnded(kWorker1, {.signal = 9});
  Advance(10);
  Say(kWorker1, AgentReport::State::kWaiting);
  for (int twice = 0; twice < 2; ++twice) say_lost(kWorker1);
  ASSERT_EQ(losses().size(), 1);
  EXPECT_EQ(losses()[0]["task"], "worker-1");
  EXPECT_EQ(losses()[0]["step"], 1200);
  const std::string text = losses()[0]["text"];
  EXPECT_NE(text.find("worker-1 was started again (incarnation 3)"), std::string::npos) << text;
  EXPECT_NE(text.find("up to step 1200 are gone from /model"), std::string::npos) << text;
  SayEnded(kWorker0, {.exit_code = 0});
  Restart();
  EXPECT_EQ(losses().size(), 1);
}

}  // namespace
}  // namespace muster::control
