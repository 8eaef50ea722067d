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
    view_.admitted = plan.admitted;
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

TEST_F(JobPlanTest, APodRunsAfterTheStatusHasNamedIt) {
  Pass();
  Set(kWorker0, 1, Phase::kStarting);
  view_.pods["j-worker-0"].gated = true;
  for (int i = 0; i < 2; ++i) {  // until the gate is gone
    const JobPlan plan = Pass();
    EXPECT_EQ(plan.admitted, (AdmittedPods{{kWorker0, "uid-1"}}));
    ASSERT_THAT(plan.admissions, SizeIs(1));
    EXPECT_EQ(plan.admissions[0].uid, "uid-1");
  }
  view_.pods["j-worker-0"].gated = false;
  EXPECT_TRUE(Pass().admissions.empty());
}

TEST_F(JobPlanTest, ALatePodOfTheSameIncarnationNeverRuns) {
  Begin();
  Set(kWorker1, 2, Phase::kStarting);  // by an operator that woke up late
  view_.pods["j-worker-1"].uid = "late";
  view_.pods["j-worker-1"].gated = true;
  view_.gone = FindUnseen(job_, status_, view_);
  ASSERT_THAT(view_.gone, SizeIs(1));
  const JobPlan plan = Pass();
  EXPECT_TRUE(plan.admissions.empty());
  ASSERT_THAT(plan.pod_deletions, SizeIs(1));
  EXPECT_EQ(plan.pod_deletions[0].uid, "late");
  EXPECT_EQ(plan.status.tasks.at(kWorker1).disruptions, 1);
  EXPECT_FALSE(plan.admitted.contains(kWorker1));
}

TEST_F(JobPlanTest, APodThatComesAfterTheEndIsDeleted) {
  Begin();
  Set(kWorker0, 1, Phase::kEnded, {.exit_code = 0});
  Pass();
  EXPECT_EQ(status_.phase, job::JobPhase::kSucceeded);
  Set(kWorker0, 1, Phase::kStarting);
  view_.pods["j-worker-0"].uid = "late";
  ASSERT_THAT(Pass().pod_deletions, SizeIs(1));
}

TEST_F(JobPlanTest, APodThatHasRunIsNotTakenForOneThatWaitsInVain) {
  Begin();
  Set(kWorker0, 1, Phase::kEnded, {.exit_code = 0});
  Pass();
  ASSERT_EQ(status_.phase, job::JobPhase::kSucceeded);
  // An operator whose watch of pods is behind that of jobs: it has not seen that the gate is gone.
  Set(kWorker0, 1, Phase::kStarting);
  view_.pods["j-worker-0"].gated = true;
  EXPECT_THAT(Pass().pod_deletions, SizeIs(0));
}

TEST_F(JobPlanTest, NothingIsMadeWhilePodsOfAnEarlierJobOfTheNameExist) {
  view_.earlier = {"j-ps-0", "j-worker-1"};
  JobPlan plan = Pass();
  EXPECT_TRUE(plan.pods.empty() && plan.services.empty());
  EXPECT_EQ(plan.problems.at("worker-0"),
            "EarlierJob: waits until the pod j-ps-0 and 1 more of an earlier job of this name have "
            "ended");
  view_.earlier.clear();
  plan = Pass();
  EXPECT_THAT(plan.pods, SizeIs(2));
  EXPECT_TRUE(plan.problems.empty());
}

TEST_F(JobPlanTest, APodOfALaterDecisionShowsThatTheStatusIsOld) {
  Begin();
  EXPECT_FALSE(IsOlderThanItsPods(status_, view_));
  Set(kWorker1, 3, Phase::kStarting);
  EXPECT_TRUE(IsOlderThanItsPods(status_, view_));
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
  const Json status =
      MakeStatus(job_.spec, status_, {{"worker-0", "Unschedulable"}}, view_.admitted);
  EXPECT_EQ(status["muster"]["rootCause"]["task"], "worker-1");
  EXPECT_EQ(status["muster"]["rootCause"]["lastLine"], "ValueError");
  EXPECT_EQ(status["muster"]["problems"]["worker-0"], "Unschedulable");
  EXPECT_EQ(status["replicaStatuses"]["Worker"]["failed"], 1);
  EXPECT_EQ(status["muster"]["pods"]["worker-0"], "uid-1");
  EXPECT_EQ(ReadAdmitted({{"status", status}}), view_.admitted);
  const auto read = ReadState({{"status", status}});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, status_);
  EXPECT_FALSE(ReadState({{"status", {{"muster", {{"state", {{"phase", 3}}}}}}}}).ok());
  EXPECT_EQ(ReadState(Json::object()).value(), job::JobStatus());
}

TEST_F(JobPlanTest, TheLargestJobsStatusFitsIntoWhatAnApiServerStores) {
  const TrainingJob job = ReadJobObject(JobObject({{"Worker", ReplicaObject(kMostTasks)}}));
  job::JobStatus status;
  AdmittedPods admitted;
  std::map<std::string, std::string> problems;
  for (int index = 0; index < kMostTasks; ++index) {
    const job::TaskId task = {TaskType::kWorker, index};
    status.tasks[task] = {};
    status.tasks[task].incarnation = index + 1;
    admitted[task] = std::string(36, 'u');
    problems[job::TaskName(task)] = std::string(400, 'p');
  }
  LimitProblems(&problems);
  EXPECT_EQ(problems.size(), 501U);
  EXPECT_EQ(problems.at("all"), "3500 more tasks have problems");
  const std::string text = MakeStatus(job.spec, status, problems, admitted).dump();
  EXPECT_LT(text.size(), (3U << 20) / 2);
  EXPECT_FALSE(ReadTrainingJob(JobObject({{"Worker", ReplicaObject(kMostTasks + 1)}})).ok());
}

TEST_F(JobPlanTest, AJobThatAnotherOperatorHasEndedStaysSo) {
  const auto with = [](const Json& conditions) {
    return Json{{"status", {{"conditions", conditions}}}};
  };
  const Json running = {{"type", "Running"}, {"status", "True"}};
  const Json succeeded = {{"type", "Succeeded"}, {"status", "True"}};
  EXPECT_EQ(GetForeignStatus(with(Json::array())), ForeignStatus::kNone);
  EXPECT_EQ(GetForeignStatus(with(Json::array({running}))), ForeignStatus::kActive);
  EXPECT_EQ(GetForeignStatus(with(Json::array({running, succeeded}))), ForeignStatus::kEnded);
  Json ours = with(Json::array({succeeded}));
  ours["status"]["muster"] = Json::object();
  EXPECT_EQ(GetForeignStatus(ours), ForeignStatus::kNone);
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

TEST_F(JobPlanTest, TwoOperatorsDoNotWriteTheirClocksInTurn) {
  Begin();
  job::JobStatus other = status_;
  other.clock_id = "another machine";
  EXPECT_TRUE(OnlyTimePassed(status_, other));
  other.last_wall += 61;
  EXPECT_FALSE(OnlyTimePassed(status_, other));
}

class StoppedTest : public JobPlanTest {
 protected:
  StoppedTest() {
    Json object = JobObject({{"Worker", ReplicaObject(2)}});
    object["metadata"]["annotations"] = {{"muster/stop", "stopped by muster stop"}};
    stopped_ = ReadJobObject(object);
  }
  TrainingJob stopped_;
};

TEST_F(StoppedTest, WhatRunsIsDeletedWhatHasEndedStaysAndTheReasonIsTheJobs) {
  Begin();
  Set(kWorker1, 2, Phase::kEnded, {.exit_code = 0});
  Pass();
  EXPECT_TRUE(stopped_.unknown_fields.empty());
  JobPlan plan = PlanJob(stopped_, status_, view_, {.wall = 9, .monotonic = 9, .clock_id = "c"});
  ASSERT_THAT(plan.pod_deletions, SizeIs(1));
  EXPECT_EQ(plan.pod_deletions[0].name, "j-worker-0");
  view_.pods["j-worker-0"] = MakeGone(view_.pods["j-worker-0"]);
  plan = PlanJob(stopped_, plan.status, view_, {.wall = 10, .monotonic = 10, .clock_id = "c"});
  EXPECT_EQ(plan.status.phase, job::JobPhase::kFailed);
  EXPECT_EQ(plan.status.failure_message, "stopped by muster stop");
  EXPECT_TRUE(plan.pods.empty());
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
