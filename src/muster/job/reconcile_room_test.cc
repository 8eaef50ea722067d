// Tasks that give back their processes, since there is no room for all of the job.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/job/reconcile_test_support.h"

namespace muster::job {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr double kPause = 30;

class ReconcileRoom : public testing::Test {
 protected:
  ReconcileRoom() : bench(GetSpec({{TaskType::kWorker, 2}})) {}
  void GiveBack(double seconds = 1) {
    bench.seen.give_back = {
        .tasks = {kWorker0, kWorker1}, .note = "too few", .pause_seconds = kPause};
    bench.Pass(seconds);
    bench.seen.give_back.reset();
  }
  // All that was told to stop has ended.
  void EndStopped() {
    for (const TaskId id : {kWorker0, kWorker1}) {
      bench.See(id, TaskObservation::Phase::kEnded, {.lost = true});
    }
    bench.Pass(1);
  }

  Bench bench;
};

TEST_F(ReconcileRoom, AllStopAndStartAgainAfterThePauseAtNoCost) {
  GiveBack();
  EXPECT_THAT(bench.Actions(), UnorderedElementsAre("stop worker-0 #1", "stop worker-1 #2"));
  EXPECT_EQ(bench.result.status.room_note, "too few");
  EndStopped();
  EXPECT_THAT(bench.Actions(), IsEmpty());
  bench.Pass(kPause - 3);
  EXPECT_THAT(bench.Actions(), IsEmpty());
  EXPECT_LE(bench.result.wake_after, 3);
  bench.Pass(3);
  EXPECT_THAT(bench.Actions(), UnorderedElementsAre("start worker-0 #3", "start worker-1 #4"));
  EXPECT_EQ(bench.result.status.room_note, "too few");
  bench.Obey();
  const JobStatus& status = bench.result.status;
  EXPECT_EQ(status.room_note, "");
  EXPECT_EQ(status.gave_back, 1);
  EXPECT_THAT(status.failures, IsEmpty());
  EXPECT_THAT(status.recent_restarts, IsEmpty());
  for (const auto& [id, task] : status.tasks) EXPECT_EQ(task.restarts + task.disruptions, 0);
}

TEST_F(ReconcileRoom, WhatRunsStopsToo) {
  bench.Obey();
  GiveBack();
  EXPECT_THAT(bench.Actions(), UnorderedElementsAre("stop worker-0 #1", "stop worker-1 #2"));
  EXPECT_EQ(bench.result.status.FindCondition("Running"), nullptr);
  EndStopped();
  bench.Pass(kPause);
  bench.Obey();
  EXPECT_EQ(bench.phase(kWorker0), TaskPhase::kRunning);
  EXPECT_NE(bench.result.status.FindCondition("Running"), nullptr);
}

TEST_F(ReconcileRoom, AJobThatEndsOrIsSuspendedGivesNothingBack) {
  Bench before = bench;
  bench.seen.cancelled = "enough";
  GiveBack();
  EXPECT_EQ(bench.result.status.gave_back, 0);
  EXPECT_EQ(bench.result.status.tasks.at(kWorker0).stop_reason, "enough");
  bench = before;
  bench.spec.suspend = true;
  GiveBack();
  EXPECT_EQ(bench.result.status.gave_back, 0);
  EXPECT_EQ(bench.result.status.tasks.at(kWorker0).stop_reason, "the job is suspended");
}

TEST_F(ReconcileRoom, AJobThatIsStoppedInThePauseEnds) {
  GiveBack();
  EndStopped();
  bench.seen.cancelled = "enough";
  bench.Pass(1);
  bench.Pass(1);
  EXPECT_EQ(bench.job(), JobPhase::kFailed);
  EXPECT_EQ(bench.result.status.room_note, "");
}

}  // namespace
}  // namespace muster::job
