#include "muster/launch/kubernetes/lost_state.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/launch/kubernetes/kubernetes_test_support.h"

namespace muster::launch::kubernetes {
namespace {

using Phase = job::TaskObservation::Phase;

const job::Now kNow = {.wall = 1.7e9 + 500, .monotonic = 42, .clock_id = {}};

// A job that has run for a while, as another definition of TFJob leaves it.
Json StrippedJob() {
  Json job = JobObject({{"Worker", ReplicaObject(2)}});
  job["status"]["startTime"] = "2023-11-14T22:13:20Z";  // 1.7e9
  job["status"]["conditions"] = Json::array(
      {{{"type", "Created"}, {"status", "True"}, {"reason", "TFJobCreated"}},
       {{"type", "Running"}, {"status", "True"}, {"lastUpdateTime", "2023-11-14T22:13:30Z"}}});
  return job;
}

JobView MakeView(const Json& job, int64_t incarnation) {
  JobView view = {.object = std::make_shared<const Json>(job)};
  view.pods["j-worker-0"] = {
      .uid = "a", .task = kWorker0, .incarnation = incarnation, .phase = Phase::kRunning};
  view.pods["j-worker-1"] = {
      .uid = "b", .task = kWorker1, .incarnation = incarnation + 3, .phase = Phase::kGone};
  return view;
}

TEST(LostStateTest, OnlyAJobThatMusterHasRunHasLostItsState) {
  Json job = StrippedJob();
  EXPECT_TRUE(HasLostItsState(MakeView(job, 1)));
  EXPECT_FALSE(HasLostItsState(MakeView(job, -3)));  // pods of another operator
  job["status"]["muster"] = Json::object();
  EXPECT_FALSE(HasLostItsState(MakeView(job, 1)));
  EXPECT_FALSE(HasLostItsState(MakeView(JobObject({{"Worker", ReplicaObject(2)}}), 1)));
  EXPECT_FALSE(HasLostItsState({}));
}

TEST(LostStateTest, PodsContinueInTheirIncarnationAndTheNextOnesAreNew) {
  const JobView view = MakeView(StrippedJob(), 4);
  const job::JobStatus state = RebuildState(view, kNow);
  ASSERT_EQ(state.tasks.size(), 1U);
  EXPECT_EQ(state.tasks.at(kWorker0).incarnation, 4);
  EXPECT_EQ(state.next_incarnation, 8);
  EXPECT_EQ(state.clock, 500);
  EXPECT_TRUE(state.FindCondition("Running")->is_true);
  EXPECT_EQ(state.FindCondition("Running")->last_update, 1.7e9 + 10);

  const TrainingJob job = ReadJobObject(*view.object);
  const JobPlan plan = PlanJob(job, state, view, kNow);
  EXPECT_TRUE(plan.pod_deletions.empty());
  EXPECT_EQ(plan.status.tasks.at(kWorker0).phase, job::TaskPhase::kRunning);
  EXPECT_EQ(plan.admitted.at(kWorker0), "a");
  ASSERT_EQ(plan.pods.size(), 1U);
  EXPECT_EQ(plan.pods[0].task, kWorker1);
  EXPECT_EQ(plan.pods[0].incarnation, 8);
  EXPECT_EQ(plan.status.FindCondition("Created")->reason, "TFJobCreated");
}

TEST(LostStateTest, TheDeadlineCountsFromTheStart) {
  Json object = StrippedJob();
  object["spec"]["runPolicy"]["activeDeadlineSeconds"] = 400;
  const JobView view = MakeView(object, 1);
  const JobPlan plan = PlanJob(ReadJobObject(object), RebuildState(view, kNow), view, kNow);
  EXPECT_EQ(plan.status.phase, job::JobPhase::kFailing);
}

}  // namespace
}  // namespace muster::launch::kubernetes
