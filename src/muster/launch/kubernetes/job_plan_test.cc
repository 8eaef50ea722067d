#include "muster/launch/kubernetes/job_plan.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/launch/kubernetes/kubernetes_test_support.h"

namespace muster::launch::kubernetes {
namespace {

using job::TaskType;
using ::testing::SizeIs;
using Phase = job::TaskObservation::Phase;

// A job of two workers and what an API server would do with its calls.
class JobPlanTest : public ::testing::Test {
 protected:
  explicit JobPlanTest(const Json& policy = Json::object())
      : job_(ReadJobObject(JobObject({{"Worker", ReplicaObject(2)}}, policy))) {}

  JobPlan Pass() {
    now_ += 1;
    JobPlan plan =
        PlanJob(job_, status_, view_, {.wall = now_, .monotonic = now_, .clock_id = "c"});
    status_ = plan.status;
    return plan;
  }
  void Set(job::TaskId task, int64_t incarnation, Phase phase, const job::TaskEnd& end = {}) {
    view_.pods[GetObjectName(job_.spec, task)] = {.uid = StrCat("uid-", incarnation),
                                                  .task = task,
                                                  .incarnation = incarnation,
                                                  .phase = phase,
                                                  .end = end};
  }
  void Begin() {
    Pass();
    Set(kWorker0, 1, Phase::kRunning);
    Set(kWorker1, 2, Phase::kRunning);
    Pass();
  }

  const TrainingJob job_;
  job::JobStatus status_;
  JobView view_;
  double now_ = 0;
};

TEST_F(JobPlanTest, StartsAreRepeatedUntilThePodIsSeen) {
  for (int i = 0; i < 2; ++i) {
    const JobPlan plan = Pass();
    ASSERT_THAT(plan.pods, SizeIs(2));
    EXPECT_EQ(plan.pods[1].incarnation, 2);
    EXPECT_THAT(plan.services, SizeIs(2));
  }
  Set(kWorker0, 1, Phase::kStarting);
  EXPECT_THAT(Pass().pods, SizeIs(1));
  EXPECT_TRUE(FindUnseen(job_, status_, view_).empty());
}

TEST_F(JobPlanTest, ANewIncarnationWaitsUntilThePodOfTheOldOneIsGone) {
  Begin();
  Set(kWorker1, 2, Phase::kEnded, {.exit_code = 137});
  JobPlan plan = Pass();
  ASSERT_THAT(plan.pod_deletions, SizeIs(1));
  EXPECT_EQ(plan.pod_deletions[0].uid, "uid-2");
  EXPECT_TRUE(plan.pods.empty());
  view_.pods["j-worker-1"].deleting = true;
  plan = Pass();
  EXPECT_TRUE(plan.pod_deletions.empty() && plan.pods.empty());
  view_.pods["j-worker-1"].phase = Phase::kGone;
  plan = Pass();
  ASSERT_THAT(plan.pods, SizeIs(1));
  EXPECT_EQ(plan.pods[0].incarnation, 3);
}

TEST_F(JobPlanTest, AnUnseenPodIsAskedForBeforeItIsCalledGone) {
  Begin();
  view_.pods.erase("j-worker-1");
  const auto unseen = FindUnseen(job_, status_, view_);
  ASSERT_THAT(unseen, SizeIs(1));
  EXPECT_EQ(unseen[0].incarnation, 2);
  EXPECT_TRUE(Pass().pods.empty());  // nothing is known: nothing is done
  view_.gone = unseen;
  const JobPlan plan = Pass();
  ASSERT_THAT(plan.pods, SizeIs(1));
  EXPECT_EQ(plan.pods[0].incarnation, 3);
  EXPECT_EQ(plan.status.tasks.at(kWorker1).disruptions, 1);
  EXPECT_EQ(plan.status.tasks.at(kWorker1).restarts, 0);
}

TEST_F(JobPlanTest, APodOfAnOlderIncarnationIsDeletedWhoeverMadeIt) {
  Begin();
  Set(kWorker1, 2, Phase::kEnded, {.exit_code = 137});
  Pass();
  Set(kWorker1, 2, Phase::kGone);
  Pass();
  Set(kWorker1, 2, Phase::kRunning);  // by an operator that woke up late
  const JobPlan plan = Pass();
  ASSERT_THAT(plan.pod_deletions, SizeIs(1));
  EXPECT_EQ(plan.pod_deletions[0].uid, "uid-2");
}

TEST_F(JobPlanTest, AFinishedJobNeedsNoFurtherLook) {
  Begin();
  Set(kWorker0, 1, Phase::kEnded, {.exit_code = 0});
  const JobPlan plan = Pass();
  EXPECT_EQ(plan.status.phase, job::JobPhase::kSucceeded);
  EXPECT_TRUE(plan.pod_deletions.empty());  // cleanPodPolicy None
  EXPECT_EQ(plan.wake_after, std::numeric_limits<double>::infinity());
}

TEST_F(JobPlanTest, TheStatusBringsTheStateBack) {
  Begin();
  Set(kWorker1, 2, Phase::kEnded, {.exit_code = 1, .last_line = "ValueError"});
  Pass();
  const Json status = MakeStatus(job_.spec, status_, {{"worker-0", "Unschedulable"}});
  EXPECT_EQ(status["muster"]["rootCause"]["task"], "worker-1");
  EXPECT_EQ(status["muster"]["rootCause"]["lastLine"], "ValueError");
  EXPECT_EQ(status["muster"]["problems"]["worker-0"], "Unschedulable");
  EXPECT_EQ(status["replicaStatuses"]["Worker"]["failed"], 1);
  const auto read = ReadState({{"status", status}});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, status_);
  EXPECT_FALSE(ReadState({{"status", {{"muster", {{"state", {{"phase", 3}}}}}}}}).ok());
  EXPECT_EQ(ReadState(Json::object()).value(), job::JobStatus());
}

TEST_F(JobPlanTest, TimeAloneIsNotWritten) {
  Begin();
  const job::JobStatus before = status_;
  Pass();
  EXPECT_TRUE(OnlyTimePassed(before, status_));
  Set(kWorker1, 2, Phase::kEnded, {.exit_code = 1});
  Pass();
  EXPECT_FALSE(OnlyTimePassed(before, status_));
}

class CleanAllTest : public JobPlanTest {
 protected:
  CleanAllTest() : JobPlanTest({{"cleanPodPolicy", "All"}}) {}
};

TEST_F(CleanAllTest, PodsThatHaveEndedAreDeletedWithTheirServices) {
  Begin();
  view_.services = {{"j-worker-0", {.uid = "s0"}}, {"j-worker-1", {.uid = "s1"}}};
  Set(kWorker0, 1, Phase::kEnded, {.exit_code = 0});
  EXPECT_THAT(Pass().pod_deletions, SizeIs(1));  // what runs; the job has not ended before
  view_.pods["j-worker-1"].phase = Phase::kGone;
  const JobPlan plan = Pass();
  EXPECT_EQ(plan.status.phase, job::JobPhase::kSucceeded);
  ASSERT_THAT(plan.pod_deletions, SizeIs(1));
  EXPECT_EQ(plan.pod_deletions[0].name, "j-worker-0");
  ASSERT_THAT(plan.service_deletions, SizeIs(1));
  EXPECT_EQ(plan.service_deletions[0].name, "j-worker-1");
}

}  // namespace
}  // namespace muster::launch::kubernetes
