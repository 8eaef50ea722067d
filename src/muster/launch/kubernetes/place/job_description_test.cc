#include "muster/launch/kubernetes/place/job_description.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/launch/kubernetes/kubernetes_test_support.h"

namespace muster::launch::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr double kNow = 1'800'000'000;

Json NewJob() {
  Json job = JobObject({{"Worker", ReplicaObject(2)}});
  job["metadata"]["creationTimestamp"] = "2027-01-15T08:00:00Z";  // kNow
  return job;
}

std::string Coordinator(const Json& job, double now = kNow) {
  return DescribeTfJob(job, {}, now).value("coordinator", "");
}

TEST(JobDescriptionTest, AJobThatNoOperatorHasSeenHasTasksThatWait) {
  const Json described = DescribeTfJob(NewJob(), {}, kNow + 5);
  EXPECT_EQ(described["name"], "j");
  EXPECT_EQ(described["namespace"], "team");
  EXPECT_EQ(described["phase"], "active");
  ASSERT_EQ(described["tasks"].size(), 2U);
  EXPECT_EQ(described["tasks"][1]["phase"], "waiting");
  EXPECT_EQ(described["tasks"][1]["address"], "j-worker-1.team.svc:2222");
  EXPECT_FALSE(described.contains("coordinator"));
  EXPECT_THAT(Coordinator(NewJob(), kNow + 60), HasSubstr("no operator has looked at it"));
}

TEST(JobDescriptionTest, TheOperatorsStateIsShown) {
  const TrainingJob job = ReadJobObject(NewJob());
  job::JobStatus status;
  status.phase = job::JobPhase::kFailed;
  status.failure_message = "worker-1 failed";
  status.tasks[kWorker1].phase = job::TaskPhase::kFailed;
  status.tasks[kWorker1].incarnation = 2;
  status.failures = {{.task = kWorker1,
                      .incarnation = 2,
                      .end = {.exit_code = 3, .last_line = "ValueError: bad"}}};
  Json object = NewJob();
  object["status"] = MakeStatus(job.spec, status, {});
  const Json described = DescribeTfJob(object, {}, kNow);
  EXPECT_EQ(described["phase"], "failed");
  EXPECT_EQ(described["message"], "worker-1 failed");
  EXPECT_EQ(described["failures"][0]["last_lines"][0], "ValueError: bad");
}

TEST(JobDescriptionTest, AJobHasTakenTheTimeThatItRan) {
  const TrainingJob job = ReadJobObject(NewJob());
  const auto took = [&](const job::JobStatus& status) {
    Json object = NewJob();
    object["status"] = MakeStatus(job.spec, status, {});
    return DescribeTfJob(object, {}, kNow + 9999).value("took", -1.0);
  };
  job::JobStatus status;
  status.phase = job::JobPhase::kActive;
  status.conditions = {{"Created", true, "TFJobCreated", "m", kNow, kNow}};
  status.start_time = kNow + 5;
  EXPECT_EQ(took(status), -1);  // it runs
  status.phase = job::JobPhase::kSuspended;
  status.conditions.push_back({"Suspended", true, "TFJobSuspended", "m", kNow + 20, kNow + 15});
  EXPECT_EQ(took(status), 10);
  status.phase = job::JobPhase::kFailed;  // stopped, an hour later
  status.completion_time = kNow + 3600;
  EXPECT_EQ(took(status), 10);
  status.start_time = 0;  // it was suspended from its beginning
  EXPECT_EQ(took(status), 0);
  status.conditions.back().is_true = false;  // resumed
  status.start_time = kNow + 3000;
  EXPECT_EQ(took(status), 600);
}

TEST(JobDescriptionTest, PodsTellTheNodeAndWhyATaskDoesNotStart) {
  const TrainingJob job = ReadJobObject(NewJob());
  Json pod = PodObject(job, kWorker0, 1, "u", 5, "Pending");
  pod["spec"]["nodeName"] = "n1";
  pod["status"]["containerStatuses"] =
      Json::array({{{"name", "tensorflow"},
                    {"state", {{"waiting", {{"reason", "ErrImagePull"}, {"message", "none"}}}}}}});
  Json of_older_job = PodObject(job, kWorker1, 1, "v", 6, "Running");
  of_older_job["metadata"]["ownerReferences"][0]["uid"] = "another";
  const auto pods = ReadPods(NewJob(), {pod, of_older_job});
  ASSERT_EQ(pods.size(), 1U);
  EXPECT_EQ(pods.at(kWorker0).container, "tensorflow");
  const Json task = DescribeTfJob(NewJob(), pods, kNow)["tasks"][0];
  EXPECT_EQ(task["place"], "n1");
  EXPECT_THAT(task.value("problem", ""), StartsWith("ErrImagePull: none (check the image's name"));
}

TEST(JobDescriptionTest, WhoseStatusAnotherControllerWritesIsToldByItsConditions) {
  Json job = NewJob();
  job["status"]["conditions"] =
      Json::array({{{"type", "Running"}, {"status", "False"}},
                   {{"type", "Failed"}, {"status", "True"}, {"message", "it has failed"}}});
  const Json described = DescribeTfJob(job, {}, kNow);
  EXPECT_EQ(described["phase"], "failed");
  EXPECT_EQ(described["message"], "it has failed");
  job["status"]["conditions"] = Json::array({{{"type", "Running"}, {"status", "True"}}});
  EXPECT_THAT(Coordinator(job), HasSubstr("kubectl apply -f deploy/kubernetes/crd.yaml"));
}

TEST(JobDescriptionTest, AJobThatTheOperatorRefusesSaysWhy) {
  Json job = NewJob();
  job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"] = Json::array();
  EXPECT_THAT(Coordinator(job), HasSubstr("containers definition expected"));
}

TEST(JobDescriptionTest, AnOrderThatNobodyFollowsIsTold) {
  Json job = NewJob();
  job["metadata"]["annotations"]["muster/stop"] = "stopped by muster stop";
  EXPECT_THAT(Coordinator(job), HasSubstr("no operator has done that yet"));
}

// The job as an operator has left it.
Json SeenJob(const job::JobStatus& status, const Json& run_policy = Json::object()) {
  Json job = NewJob();
  if (!run_policy.empty()) job["spec"]["runPolicy"] = run_policy;
  job["status"] = MakeStatus(ReadJobObject(job).spec, status, {});
  return job;
}

TEST(JobDescriptionTest, ASuspensionThatNobodyFollowsIsTold) {
  job::JobStatus status;
  status.tasks[kWorker0].phase = job::TaskPhase::kRunning;
  EXPECT_EQ(Coordinator(SeenJob(status)), "");
  EXPECT_THAT(Coordinator(SeenJob(status, {{"suspend", true}})),
              StartsWith("it was told to suspend, and no operator has done that yet: muster "
                         "operator must run, and see the namespace team"));
  status.phase = job::JobPhase::kSuspended;
  EXPECT_EQ(Coordinator(SeenJob(status, {{"suspend", true}})), "");
  EXPECT_EQ(Coordinator(SeenJob(status)), "");  // it waits for a task to end
  status.tasks[kWorker0].phase = job::TaskPhase::kWaiting;
  EXPECT_THAT(Coordinator(SeenJob(status)), StartsWith("it was told to resume"));
  Json fresh = NewJob();  // no operator has seen it yet
  fresh["spec"]["runPolicy"]["suspend"] = true;
  EXPECT_EQ(Coordinator(fresh), "");
}

TEST(JobDescriptionTest, WhatTheSettingsDoNotDoIsANote) {
  job::JobStatus status;
  status.tasks[kWorker0].phase = job::TaskPhase::kRunning;
  Json job = SeenJob(status);
  EXPECT_EQ(DescribeTfJob(job, {}, kNow)["notes"], Json::array());
  job["status"]["muster"]["problems"] = {{"spec", "the number stays"}, {"worker-0", "no node"}};
  EXPECT_EQ(DescribeTfJob(job, {}, kNow)["notes"], Json::array({"the number stays"}));
  Json& worker = job["spec"]["tfReplicaSpecs"]["Worker"];
  worker["template"]["spec"]["containers"][0]["command"] = {"muster", "worker"};
  worker["replicas"] = 1;
  job["metadata"]["annotations"]["muster/workers"] = "2-4";
  EXPECT_THAT(DescribeTfJob(job, {}, kNow)["notes"][0].get<std::string>(),
              HasSubstr("muster/workers allows no fewer than 2"));
}

TEST(JobDescriptionTest, APodThatIsGoneIsExplained) {
  job::JobStatus status;
  status.phase = job::JobPhase::kFailed;
  status.failure_message = "it has reached the backoff limit.";
  job::TaskStatus& task = status.tasks[kWorker0];
  task.phase = job::TaskPhase::kStopped;
  task.stop_reason = "the job has failed";
  status.failures = {{.task = kWorker0, .end = {.exit_code = 3, .last_line = "ValueError"}}};
  const auto explain = [&](const Json& run_policy) {
    const Json job = SeenJob(status, run_policy);
    return DescribeLostPod(job, DescribeTfJob(job, {}, kNow), "worker-0").value_or("none");
  };
  EXPECT_EQ(explain({}),
            "it was deleted when it still ran: the job has failed: it has reached the backoff "
            "limit; the job's status keeps the last line of a run that failed: 'ValueError'");
  task.phase = job::TaskPhase::kFailed;
  status.failures.clear();
  EXPECT_EQ(explain({}), "somebody has deleted it");
  EXPECT_THAT(explain({{"cleanPodPolicy", "All"}}), HasSubstr("cleanPodPolicy All"));
  task.phase = job::TaskPhase::kSucceeded;  // it was told to end, and ended well
  task.stop_reason.clear();
  EXPECT_EQ(explain({}),
            "it was deleted when the job ended, or later: it has reached the backoff limit");
  status.phase = job::JobPhase::kActive;
  task.phase = job::TaskPhase::kRunning;
  EXPECT_EQ(explain({}), "none");
}

TEST(JobDescriptionTest, WithoutAnOperatorPodsThatAreGoneOrHaveEndedAreProblems) {
  job::JobStatus status;
  status.tasks[kWorker0].phase = job::TaskPhase::kRunning;
  status.tasks[kWorker1].phase = job::TaskPhase::kRunning;
  const Json job = SeenJob(status);
  std::map<job::TaskId, PodInfo> pods;
  pods[kWorker0].record.phase = job::TaskObservation::Phase::kRunning;
  const auto problems = [&](const std::optional<std::map<job::TaskId, PodInfo>>& known) {
    Json described = DescribeTfJob(job, pods, kNow);
    DescribeSilence("no operator runs", known, &described);
    EXPECT_EQ(described["coordinator"], "no operator runs");
    return Json::array(
        {described["tasks"][0].value("problem", ""), described["tasks"][1].value("problem", "")});
  };
  EXPECT_EQ(problems(std::nullopt), Json::array({"", ""}));
  EXPECT_EQ(problems(pods),
            Json::array({"", "its pod is gone, and no operator makes another one"}));
  pods[kWorker0].record.phase = job::TaskObservation::Phase::kEnded;
  pods[kWorker0].record.end.exit_code = 3;
  pods[kWorker1] = pods[kWorker0];
  EXPECT_EQ(problems(pods)[0], "its pod has ended (exit code 3), and no operator has seen that");
}

TEST(JobDescriptionTest, PodsThatAnEndedJobHasLeftRunningAreNamed) {
  std::map<job::TaskId, PodInfo> pods;
  pods[kWorker0].record.phase = job::TaskObservation::Phase::kEnded;
  pods[kWorker1].record.phase = job::TaskObservation::Phase::kRunning;
  Json described = {{"name", "j"}};
  DescribeRest(pods, &described);
  EXPECT_EQ(described["notes"], Json::array({"the pods of worker-1 still run, since cleanPodPolicy "
                                             "is None: muster stop j deletes them"}));
  pods[kWorker1].record.deleting = true;
  described = {{"name", "j"}};
  DescribeRest(pods, &described);
  EXPECT_FALSE(described.contains("notes"));
}

TEST(JobDescriptionTest, AdviceIsOneLine) {
  EXPECT_EQ(AddAdvice("unheard of"), "unheard of");
  EXPECT_THAT(AddAdvice("pods is forbidden:\nexceeded quota: q"),
              StartsWith("pods is forbidden: exceeded quota: q (ask for less"));
  EXPECT_THAT(AddAdvice("Unschedulable: persistentvolumeclaim \"a\" not found"),
              HasSubstr("make that claim"));
  EXPECT_THAT(AddAdvice("Unschedulable: 1 Preemption is not helpful for scheduling.\n"),
              HasSubstr("not helpful for scheduling (no node"));
  EXPECT_EQ(AddAdvice("it waits..."), "it waits...");
}

}  // namespace
}  // namespace muster::launch::kubernetes
