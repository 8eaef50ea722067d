// Incarnations of a launcher that does not see ends: they are gone by the coordinator's clock.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/control/agent.h"
#include "muster/control/test_coordinator.h"

namespace muster::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kInstant = 0.01;

class LeaseTest : public CoordinatorTest {
 protected:
  LeaseTest() { launcher_.traits_now = {.sees_ends = false}; }

  // All agents run; of worker-1 nothing is heard from now on.
  void RunUntilWorker1IsSilent() {
    Begin(Workers(2));
    RunBoth();
    coordinator_->NoteAnswer(kWorker0, 1, 0);
    coordinator_->NoteAnswer(kWorker1, 2, 0);
  }
  // Worker-0 reports meanwhile.
  void Wait(double seconds) {
    while (seconds > 0) {
      const double some = std::min(seconds, 1.0);
      seconds -= some;
      clock_.Advance(some);
      Say(kWorker0, AgentReport::State::kRunning);
    }
  }
};

TEST_F(LeaseTest, ASilentAgentIsGoneOnceItsTaskHasCertainlyEnded) {
  RunUntilWorker1IsSilent();
  const double gone = GoneAfterSeconds(options_.lease_seconds);
  // The lease, a look, the grace, a clock that is a hundredth slower.
  EXPECT_GE(gone, (options_.lease_seconds + kAgentLookSeconds + kLostGraceSeconds) * 1.01);
  Wait(gone - kInstant);
  EXPECT_THAT(launcher_.kills, ElementsAre("worker-1.2"));
  EXPECT_EQ(GetPhase(kWorker1), TaskPhase::kRunning);
  EXPECT_EQ(launcher_.requests.back().incarnation, 2);
  Wait(2 * kInstant);
  EXPECT_EQ(GetPhase(kWorker1), TaskPhase::kStarting);
  EXPECT_EQ(launcher_.requests.back().incarnation, 3);
  const job::TaskStatus& task = coordinator_->status().tasks.at(kWorker1);
  EXPECT_THAT(task.last_end->Describe(), HasSubstr("silent for 10s"));
  EXPECT_TRUE(task.last_end->disrupted);  // its machine was lost: nothing is counted
  EXPECT_EQ(task.restarts, 0);
  EXPECT_EQ(task.disruptions, 1);
}

TEST_F(LeaseTest, TheLeaseCountsFromTheLastAnswerNotFromTheLastReport) {
  RunUntilWorker1IsSilent();
  coordinator_->NoteAnswer(kWorker1, 2, 2.5);  // its report is held so long
  Wait(GoneAfterSeconds(options_.lease_seconds) + 2.5 - kInstant);
  EXPECT_EQ(GetPhase(kWorker1), TaskPhase::kRunning);
  Wait(2 * kInstant);
  EXPECT_EQ(GetPhase(kWorker1), TaskPhase::kStarting);
}

TEST_F(LeaseTest, AnAgentThatWasGivenUpIsToldToEndAndItsWordIsTaken) {
  RunUntilWorker1IsSilent();
  Wait(options_.lease_seconds + 2);
  ASSERT_THAT(launcher_.kills, ElementsAre("worker-1.2"));
  const AgentOrders orders = Say(kWorker1, AgentReport::State::kRunning);
  EXPECT_TRUE(orders.stop);
  EXPECT_EQ(orders.grace_seconds, 0);
  coordinator_->NoteAnswer(kWorker1, 2, 0);  // prolongs nothing
  SayEnded(kWorker1, {.signal = 9});
  EXPECT_EQ(GetPhase(kWorker1), TaskPhase::kStarting);
  EXPECT_EQ(coordinator_->status().tasks.at(kWorker1).incarnation, 3);
}

TEST_F(LeaseTest, OneThatNeverReportedRunsNothingAndIsCounted) {
  Begin(Workers(2));
  Say(kWorker0, AgentReport::State::kWaiting);
  for (int i = 0; i < 62; ++i) {
    clock_.Advance(1);
    Say(kWorker0, AgentReport::State::kWaiting);
  }
  const job::TaskStatus& task = coordinator_->status().tasks.at(kWorker1);
  EXPECT_EQ(task.restarts, 1);
  EXPECT_EQ(task.disruptions, 0);
}

TEST_F(LeaseTest, AStopThatTheLastAnswerMayHaveBroughtIsWaitedFor) {
  options_.grace_seconds = 60;
  RunUntilWorker1IsSilent();
  coordinator_->Cancel("enough");
  Pass();
  coordinator_->NoteAnswer(kWorker1, 2, 0);
  Wait(GoneAfterSeconds(60) - kInstant);
  EXPECT_EQ(GetPhase(kWorker1), TaskPhase::kStopping);
  Wait(20);  // until its patience is at an end, too
  EXPECT_EQ(GetPhase(kWorker1), TaskPhase::kStopped);
}

TEST_F(LeaseTest, ARestartedCoordinatorCountsFromItsOwnStart) {
  RunUntilWorker1IsSilent();
  clock_.Advance(5);
  Restart();
  Say(kWorker0, AgentReport::State::kRunning);
  Wait(GoneAfterSeconds(options_.lease_seconds) - kInstant);
  EXPECT_EQ(GetPhase(kWorker1), TaskPhase::kRunning);
  Wait(2 * kInstant);
  EXPECT_EQ(GetPhase(kWorker1), TaskPhase::kStarting);
}

TEST_F(LeaseTest, ThePlatformsLeastLeaseIsTheJobs) {
  launcher_.traits_now.lease_seconds = 60;
  Begin(Workers(1));
  EXPECT_EQ(launcher_.requests.back().lease_seconds, 60);
  EXPECT_EQ(launcher_.requests.back().process.command[0], "program");
}

}  // namespace
}  // namespace muster::control
