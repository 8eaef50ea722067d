#include "muster/control/gang_wait.h"

#include <set>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/control/test_coordinator.h"

namespace muster::control {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;

constexpr double kSeconds = 100, kLongest = 150;

GangLook Lacks(int64_t incarnation) {
  return {.missing = {{kWorker1, incarnation}}, .is_held = true};
}

TEST(GangWaitTest, AWaitIsTooLongAfterTheTimeOrHalfAsLongAgain) {
  GangWait wait(kSeconds, 1);
  EXPECT_FALSE(wait.Look(Lacks(2), 1000));
  const double left = wait.seconds_left();
  EXPECT_THAT(left, AllOf(Ge(kSeconds), Le(kLongest)));
  EXPECT_FALSE(wait.Look(Lacks(2), 1000 + left - 0.01));
  EXPECT_NEAR(wait.Look(Lacks(2), 1000 + left + 0.01).value_or(0), left, 0.02);
  EXPECT_FALSE(wait.Look(Lacks(2), 1000 + left + 0.01)) << "the next wait has begun";
}

TEST(GangWaitTest, WhatIsNewBeginsTheWaitAnew) {
  GangWait wait(kSeconds, 1);
  EXPECT_FALSE(wait.Look({.missing = {{kWorker0, 1}, {kWorker1, 2}}, .is_held = true}, 0));
  EXPECT_FALSE(wait.Look(Lacks(2), 99)) << "a process came";
  EXPECT_FALSE(wait.Look(Lacks(2), 198));
  wait.Reset();
  EXPECT_FALSE(wait.Look(Lacks(2), 1000));
  EXPECT_FALSE(wait.Look(Lacks(2), 1099));
  EXPECT_TRUE(wait.Look(Lacks(2), 1000 + kLongest));
}

TEST(GangWaitTest, WhoHoldsNothingOrAdvancesWaitsOn) {
  GangWait wait(kSeconds, 1);
  GangLook look = Lacks(2);
  look.is_held = false;
  for (double now = 0; now < 10'000; now += 50) EXPECT_FALSE(wait.Look(look, now));
  look.is_held = true;
  look.still_seconds = 20;  // a running task has given a sign of life since
  for (double now = 10'000; now < 20'000; now += 50) EXPECT_FALSE(wait.Look(look, now));
  look.still_seconds = kLongest;
  EXPECT_TRUE(wait.Look(look, 20'000));
  GangWait never(0, 1);
  for (double now = 0; now < 10'000; now += 50) EXPECT_FALSE(never.Look(Lacks(2), now));
}

TEST(GangWaitTest, PausesDifferAndAreNoLongerThanAMinute) {
  GangWait one(kSeconds, 1), other(kSeconds, 2);
  EXPECT_NE(one.DrawPause(), one.DrawPause());
  EXPECT_NE(one.DrawPause(), other.DrawPause());
  for (int i = 0; i < 100; ++i) EXPECT_THAT(one.DrawPause(), AllOf(Ge(10), Le(60)));
  GangWait hasty(6, 1);
  for (int i = 0; i < 100; ++i) EXPECT_THAT(hasty.DrawPause(), AllOf(Ge(1), Le(6)));
}

// A platform that gives the tasks of `lacking` no processes.
class RoomTest : public CoordinatorTest {
 protected:
  class Launcher : public FakeLauncher {
   public:
    bool LacksProcess(TaskId task, int64_t incarnation) const override {
      return lacking.contains(task) && processes.at({task, incarnation}).alive;
    }
    std::string DescribeProcess() const override { return "container of YARN's queue root.q"; }
    void Kill(TaskId task, int64_t incarnation) override {
      FakeLauncher::Kill(task, incarnation);
      processes[{task, incarnation}].alive = false;
    }
    std::set<TaskId> lacking;
  };

  RoomTest() {
    options_.gang_seconds = kSeconds;
    options_.rendezvous_seconds = 0;
  }
  Coordinator::Environment InRoom() {
    journal_ = *Journal::Open(files_, kJournalPath);
    return {journal_.get(), &room_, &clock_, "boot"};
  }
  void BeginInRoom(const job::JobSpec& spec) {
    coordinator_ = *Coordinator::New(spec, options_, InRoom());
    Pass();
  }
  // Each second the agents of the tasks in `states_` report.
  void Wait(double seconds) {
    for (; seconds > 0; --seconds) {
      clock_.Advance(1);
      for (const auto& [task, state] : states_) {
        AgentReport report = Report(task, state);
        if (state == AgentReport::State::kRunning) report.step = step_;
        report.idle_seconds = idle_;
        coordinator_->Take(report);
      }
      Pass();
      idle_ += 1;
    }
  }
  void WaitUntilGivenBack() {
    for (double waited = 0; coordinator_->status().gave_back == 0; ++waited) {
      ASSERT_LE(waited, kLongest + 2);
      Wait(1);
    }
  }
  const job::TaskStatus& GetTask(TaskId task) { return coordinator_->status().tasks.at(task); }
  std::string GetNote() {
    const Json job = coordinator_->Describe();
    return job.contains("notes") ? job["notes"][0].get<std::string>() : "";
  }

  Launcher room_;
  std::map<TaskId, AgentReport::State> states_;
  std::optional<int64_t> step_;
  double idle_ = 0;
};

TEST_F(RoomTest, WhatIsHeldInVainIsGivenBackAndAskedForAgain) {
  room_.lacking = {kWorker1};
  BeginInRoom(Workers(2));
  states_ = {{kWorker0, AgentReport::State::kWaiting}};
  Wait(kSeconds - 1);
  EXPECT_EQ(GetNote(), "");
  WaitUntilGivenBack();
  Pass();
  EXPECT_EQ(GetPhase(kWorker1), TaskPhase::kWaiting) << "its request is withdrawn";
  EXPECT_TRUE(OrdersFor(kWorker0).stop);
  EXPECT_THAT(GetNote(),
              AllOf(HasSubstr("worker-1 (1 of 2 tasks) got no container of YARN's queue root.q"),
                    HasSubstr("1 other holds its own in vain"), HasSubstr("asks for all again")));
  states_.clear();
  SayEnded(kWorker0, {.signal = 15});
  EXPECT_EQ(GetPhase(kWorker0), TaskPhase::kWaiting);
  const size_t before = room_.requests.size();
  coordinator_ = *Coordinator::Resume(InRoom());
  Wait(9);
  EXPECT_EQ(room_.requests.size(), before) << "the next coordinator pauses, too";
  Wait(52);
  EXPECT_EQ(room_.requests.back().incarnation, 4);
  EXPECT_THAT(GetNote(), HasSubstr("asks for all again"));
  room_.lacking.clear();
  RunBoth();
  EXPECT_EQ(GetNote(), "");
  EXPECT_EQ(coordinator_->Describe()["gave_back"], 1);
  for (const TaskId task : {kWorker0, kWorker1}) {
    EXPECT_EQ(GetTask(task).restarts + GetTask(task).disruptions, 0);
  }
  EXPECT_TRUE(coordinator_->status().failures.empty());
  EXPECT_TRUE(coordinator_->status().recent_restarts.empty());
}

TEST_F(RoomTest, WhoHoldsNothingKeepsWaiting) {
  room_.lacking = {kWorker0, kWorker1};
  BeginInRoom(Workers(2));
  Wait(1000);
  EXPECT_EQ(GetTask(kWorker0).incarnation, 1);
  EXPECT_FALSE(coordinator_->Describe().contains("gave_back"));
}

TEST_F(RoomTest, ATaskThatNobodyNeedsIsWaitedForAlone) {
  job::JobSpec spec = Workers(1);
  spec.replicas[TaskType::kEvaluator] = {1, job::RestartPolicy::kOnFailure,
                                         job::TemplateFor({"program"})};
  room_.lacking = {{TaskType::kEvaluator, 0}};
  BeginInRoom(spec);
  states_ = {{kWorker0, AgentReport::State::kWaiting}};
  Wait(2);
  EXPECT_TRUE(OrdersFor(kWorker0).start);
  states_ = {{kWorker0, AgentReport::State::kRunning}};
  step_ = 7;
  Wait(1000);
  EXPECT_EQ(GetPhase(kWorker0), TaskPhase::kRunning);
}

// Training, in which worker-1 has died: the others wait for it, unless they can do without.
class TrainingRoomTest : public RoomTest {
 protected:
  void LoseWorker1() {
    job::JobSpec spec = Workers(2);
    spec.restart_scope = job::RestartScope::kTask;
    BeginInRoom(spec);
    RunBoth();
    room_.lacking = {kWorker1};
    SayEnded(kWorker1, {.signal = 9});
    states_ = {{kWorker0, AgentReport::State::kRunning}};
    idle_ = 0;
  }
};

TEST_F(TrainingRoomTest, TasksThatStandStillWithoutAnotherAreGivenBackToo) {
  LoseWorker1();
  step_ = 7;
  WaitUntilGivenBack();
  EXPECT_TRUE(OrdersFor(kWorker0).stop);
  EXPECT_EQ(GetTask(kWorker0).stop_reason, "given back, since there is no room for all");
  EXPECT_NE(coordinator_->status().FindCondition("Restarting"), nullptr);
  EXPECT_EQ(GetTask(kWorker0).restarts, 0);
  EXPECT_EQ(GetTask(kWorker1).restarts, 1) << "it died";
}

TEST_F(TrainingRoomTest, TasksThatAdvanceKeepTheirs) {
  LoseWorker1();
  for (int i = 0; i < 20; ++i) {
    step_ = i;
    idle_ = 0;
    Wait(50);
  }
  EXPECT_EQ(GetPhase(kWorker0), TaskPhase::kRunning);
}

TEST_F(TrainingRoomTest, TasksThatCountNoStepsKeepTheirs) {
  LoseWorker1();
  Wait(1000);
  EXPECT_EQ(GetPhase(kWorker0), TaskPhase::kRunning);
}

// Two or three workers: the platform has no process for worker-2.
class ElasticRoomTest : public RoomTest {
 protected:
  void BeginWithout(std::set<TaskId> lacking) {
    job::JobSpec spec = Workers(3);
    spec.restart_scope = job::RestartScope::kTask;
    spec.min_workers = 2;
    spec.max_workers = 3;
    room_.lacking = std::move(lacking);
    BeginInRoom(spec);
    states_ = {{kWorker0, AgentReport::State::kWaiting}};
  }
  const TaskId worker2_{TaskType::kWorker, 2};
};

TEST_F(ElasticRoomTest, EnoughWorkersStartWithoutThoseThatHaveNoProcess) {
  BeginWithout({worker2_});
  states_[kWorker1] = AgentReport::State::kWaiting;
  Wait(8);
  EXPECT_FALSE(OrdersFor(kWorker0).start);
  Wait(3);
  ASSERT_TRUE(OrdersFor(kWorker0).start);
  ASSERT_TRUE(OrdersFor(kWorker1).start);
  const auto config = [this](TaskId task) {
    const AgentOrders orders = OrdersFor(task);
    for (const auto& [name, value] : orders.start->env) {
      if (name == "TF_CONFIG") return value;
    }
    return std::string();
  };
  EXPECT_THAT(config(kWorker0), HasSubstr("worker-2.invalid:1"));
  for (auto& [task, state] : states_) state = AgentReport::State::kRunning;
  room_.lacking.clear();
  states_[worker2_] = AgentReport::State::kWaiting;
  Wait(2);
  ASSERT_TRUE(OrdersFor(worker2_).start) << "it joins later";
  EXPECT_THAT(config(worker2_), Not(HasSubstr(".invalid")));
  for (const auto& [task, state] : states_) EXPECT_EQ(GetTask(task).incarnation, task.index + 1);
}

TEST_F(ElasticRoomTest, FewerThanTheMinimumWait) {
  BeginWithout({kWorker1, worker2_});
  Wait(kSeconds - 1);
  EXPECT_FALSE(OrdersFor(kWorker0).start);
}

TEST_F(ElasticRoomTest, AWorkerThatHasAProcessIsWaitedFor) {
  BeginWithout({});
  states_[kWorker1] = AgentReport::State::kWaiting;
  Wait(1000);
  EXPECT_FALSE(OrdersFor(kWorker0).start);
}

}  // namespace
}  // namespace muster::control
