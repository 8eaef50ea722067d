#include "muster/launch/kubernetes/pod_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/launch/kubernetes/kubernetes_test_support.h"
#include "muster/launch/kubernetes/pod_record.h"

namespace muster::launch::kubernetes {
namespace {

using job::TaskType;
using Phase = job::TaskObservation::Phase;

constexpr job::TaskId kPs0 = {TaskType::kPs, 0};

Json EnvOf(const Json& pod, const std::string& name) {
  for (const Json& entry : pod["spec"]["containers"][0].value("env", Json::array())) {
    if (entry["name"] == name) return entry["value"];
  }
  return nullptr;
}

TEST(PodPlanTest, APodHasTheTemplateAndWhatTfJobAdds) {
  Json object = JobObject({{"PS", ReplicaObject(1)}, {"Worker", ReplicaObject(2)}});
  Json& pod_template = object["spec"]["tfReplicaSpecs"]["Worker"]["template"];
  pod_template["metadata"]["labels"] = {{"app", "mnist"}};
  pod_template["spec"]["nodeSelector"] = {{"disk", "fast"}};
  pod_template["spec"]["restartPolicy"] = "Always";
  pod_template["spec"]["containers"][0]["env"] = Json::array({{{"name", "A"}, {"value", "b"}}});
  const TrainingJob job = ReadJobObject(object);
  const Json pod = MakePod(job, kWorker0, 7, {.cluster_domain = "cluster.local"}).value();
  EXPECT_EQ(GetName(pod), "j-worker-0");
  EXPECT_EQ(pod["metadata"]["labels"]["app"], "mnist");
  EXPECT_EQ(pod["metadata"]["labels"][std::string(kRoleLabel)], "master");
  EXPECT_EQ(pod["metadata"]["annotations"][std::string(kIncarnationAnnotation)], "7");
  EXPECT_EQ(pod["spec"]["nodeSelector"]["disk"], "fast");
  EXPECT_EQ(pod["spec"]["restartPolicy"], "Never");
  EXPECT_EQ(EnvOf(pod, "A"), "b");
  EXPECT_EQ(EnvOf(pod, "TF_CONFIG"),
            R"({"cluster":{"ps":["j-ps-0.team.svc.cluster.local:2222"],)"
            R"("worker":["j-worker-0.team.svc.cluster.local:2222",)"
            R"("j-worker-1.team.svc.cluster.local:2222"]},)"
            R"("task":{"type":"worker","index":0},"environment":"cloud"})");
  EXPECT_EQ(pod["spec"]["containers"][0]["ports"][0]["containerPort"], 2222);
  EXPECT_FALSE(MakePod(job, {TaskType::kChief, 0}, 1, {}).ok());
}

TEST(PodPlanTest, AJobOfOneTaskHasNoTfConfig) {
  const TrainingJob job = ReadJobObject(JobObject({{"Worker", ReplicaObject(1)}}));
  EXPECT_TRUE(EnvOf(MakePod(job, kWorker0, 1, {}).value(), "TF_CONFIG").is_null());
}

TEST(PodPlanTest, APortOfTheTemplateIsTheServices) {
  Json object = JobObject({{"PS", ReplicaObject(1)}, {"Worker", ReplicaObject(1)}});
  object["spec"]["tfReplicaSpecs"]["PS"]["template"]["spec"]["containers"][0]["ports"] =
      Json::array({{{"name", "tfjob-port"}, {"containerPort", 5000}}});
  const TrainingJob job = ReadJobObject(object);
  const Json service = MakeService(job, kPs0);
  EXPECT_EQ(service["spec"]["ports"][0]["port"], 5000);
  EXPECT_EQ(service["spec"]["clusterIP"], "None");
  EXPECT_EQ(MakeService(job, kWorker0)["spec"]["ports"][0]["port"], 2222);
  EXPECT_EQ(MakePod(job, kPs0, 1, {}).value()["spec"]["containers"][0]["ports"].size(), 1U);
}

TEST(PodPlanTest, AServiceReachesPodsOfItsOwnJobAlone) {
  TrainingJob job =
      ReadJobObject(JobObject({{"PS", ReplicaObject(1)}, {"Worker", ReplicaObject(1)}}));
  const Json selector = MakeService(job, kPs0)["spec"]["selector"];
  const auto is_selected = [&](const Json& pod) {
    return std::all_of(selector.items().begin(), selector.items().end(), [&](const auto& each) {
      return GetText(pod["metadata"]["labels"], each.key()) == each.value();
    });
  };
  EXPECT_TRUE(is_selected(MakePod(job, kPs0, 1, {}).value()));
  EXPECT_FALSE(is_selected(MakePod(job, kWorker0, 1, {}).value()));
  job.uid = "that of an earlier job";
  EXPECT_FALSE(is_selected(MakePod(job, kPs0, 1, {}).value()));
}

TEST(PodPlanTest, TheKubeletRestartsUnlessASettingOfMustersDecides) {
  Json object = JobObject({{"Worker", ReplicaObject(1, "OnFailure")}});
  EXPECT_TRUE(RestartsInPlace(ReadJobObject(object), TaskType::kWorker));
  object["metadata"]["annotations"] = {{"muster/restartScope", "gang"}};
  EXPECT_FALSE(RestartsInPlace(ReadJobObject(object), TaskType::kWorker));
}

class PodRecordTest : public ::testing::Test {
 protected:
  Json Pod(const std::string& phase) const {
    return PodObject(job_, kWorker0, 3, "uid", 20, phase);
  }
  const TrainingJob job_ = ReadJobObject(JobObject({{"Worker", ReplicaObject(1)}}));
};

TEST_F(PodRecordTest, ReadsWhoseItIs) {
  const Json pod = Pod("Pending");
  EXPECT_EQ(FindOwner(pod)->uid, "job-uid");
  const PodRecord record = ReadPod(pod).value();
  EXPECT_EQ(record.task, kWorker0);
  EXPECT_EQ(record.incarnation, 3);
  EXPECT_EQ(record.version, 20);
  EXPECT_EQ(record.phase, Phase::kStarting);
  EXPECT_EQ(ReadPod(Pod("Running"))->phase, Phase::kRunning);
  EXPECT_FALSE(ReadPod(Json::object()).has_value());
}

TEST_F(PodRecordTest, ReadsHowItEnded) {
  Json pod = Pod("Failed");
  SetTerminated(137, "OOMKilled", "step 1\nallocating\n", &pod);
  const PodRecord record = ReadPod(pod).value();
  EXPECT_EQ(record.phase, Phase::kEnded);
  EXPECT_EQ(record.restarts_in_place, 2);
  EXPECT_EQ(record.end.exit_code, 137);
  EXPECT_TRUE(record.end.out_of_memory);
  EXPECT_FALSE(record.end.disrupted);
  EXPECT_EQ(record.end.last_line, "allocating");
  SetTerminated(0, "Completed", "", &pod);
  EXPECT_TRUE(ReadPod(pod)->end.succeeded());
}

TEST_F(PodRecordTest, APlatformsEndIsADisruption) {
  Json pod = Pod("Failed");
  pod["status"]["reason"] = "Evicted";
  EXPECT_TRUE(ReadPod(pod)->end.disrupted);
  SetTerminated(143, "Error", "", &pod);
  pod["status"].erase("reason");
  pod["status"]["conditions"] = Json::array(
      {{{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "PreemptionByScheduler"}}});
  const PodRecord record = ReadPod(pod).value();
  EXPECT_TRUE(record.end.disrupted);
  EXPECT_EQ(record.end.detail, "ended by the platform: PreemptionByScheduler");
  EXPECT_TRUE(MakeGone(ReadPod(Pod("Running")).value()).end.disrupted);
  EXPECT_EQ(MakeGone(record).end.exit_code, 143);
}

TEST_F(PodRecordTest, TheEndOfADeletedPodIsADisruption) {
  Json pod = Pod("Failed");
  SetTerminated(143, "Error", "stopped", &pod);
  Json& terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"];
  terminated["finishedAt"] = "2026-01-01T00:00:30Z";
  EXPECT_FALSE(ReadPod(pod)->end.disrupted);
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z";
  pod["metadata"]["deletionGracePeriodSeconds"] = 30;
  const PodRecord record = ReadPod(pod).value();
  EXPECT_TRUE(record.end.disrupted);
  EXPECT_EQ(record.end.Describe(), "its pod was deleted; exit code 143");
  EXPECT_EQ(record.end.last_line, "stopped");
  // It had ended before somebody removed it.
  pod["metadata"]["deletionGracePeriodSeconds"] = 29;
  EXPECT_FALSE(ReadPod(pod)->end.disrupted);
}

TEST_F(PodRecordTest, ALackOfMemoryIsNamedWithItsLimit) {
  Json pod = Pod("Failed");
  SetTerminated(137, "OOMKilled", "", &pod);
  EXPECT_EQ(ReadPod(pod)->end.Describe(),
            "no memory was left on its node; exit code 137 (out of memory)");
  pod["spec"]["containers"][0]["resources"]["limits"]["memory"] = "2Gi";
  EXPECT_EQ(ReadPod(pod)->end.Describe(),
            "it needed more than its limit of 2Gi of memory; exit code 137 (out of memory)");
}

TEST_F(PodRecordTest, SaysWhyItDoesNotStart) {
  Json pod = Pod("Pending");
  pod["status"]["conditions"] = Json::array({{{"type", "PodScheduled"},
                                              {"status", "False"},
                                              {"reason", "Unschedulable"},
                                              {"message", "no node has a GPU"}}});
  EXPECT_EQ(ReadPod(pod)->problem, "Unschedulable: no node has a GPU");
  pod["status"]["containerStatuses"] = Json::array(
      {{{"name", "tensorflow"}, {"state", {{"waiting", {{"reason", "ContainerCreating"}}}}}}});
  pod["status"].erase("conditions");
  EXPECT_EQ(ReadPod(pod)->problem, "");
}

TEST_F(PodRecordTest, ARestartInPlaceHasItsCause) {
  Json pod = Pod("Running");
  pod["status"]["containerStatuses"] = Json::array(
      {{{"name", "tensorflow"},
        {"restartCount", 2},
        {"state",
         {{"waiting",
           {{"reason", "CrashLoopBackOff"}, {"message", "back-off 10s restarting failed"}}}}},
        {"lastState", {{"terminated", {{"exitCode", 3}, {"message", "a\nValueError: x"}}}}}}});
  const PodRecord record = ReadPod(pod).value();
  ASSERT_TRUE(record.end_in_place.has_value());
  EXPECT_EQ(record.end_in_place->exit_code, 3);
  EXPECT_EQ(record.end_in_place->last_line, "ValueError: x");
  EXPECT_EQ(record.problem,
            "CrashLoopBackOff: back-off 10s restarting failed; the last run: exit code 3, with "
            "'ValueError: x'");
}

TEST_F(PodRecordTest, AContainerThatKeepsAnEndedPodIsNamed) {
  Json pod = Pod("Running");
  const Json terminated = {{"terminated", {{"exitCode", 0}}}};
  pod["spec"]["restartPolicy"] = "OnFailure";
  pod["status"]["containerStatuses"] =
      Json::array({{{"name", "proxy"}, {"state", {{"running", Json::object()}}}},
                   {{"name", "tensorflow"}, {"state", terminated}}});
  EXPECT_EQ(ReadPod(pod)->problem,
            "its container tensorflow has ended (exit code 0), but the container proxy still runs, "
            "and a pod ends with its last container; one that shall end with the others is an init "
            "container with restartPolicy Always");
  Json& states = pod["status"]["containerStatuses"];
  states[1]["state"]["terminated"]["exitCode"] = 3;
  EXPECT_EQ(ReadPod(pod)->problem, "");  // the kubelet starts it again
  pod["spec"]["restartPolicy"] = "Never";
  EXPECT_NE(ReadPod(pod)->problem, "");
  states[0]["state"] = terminated;
  EXPECT_EQ(ReadPod(pod)->problem, "");
}

TEST_F(PodRecordTest, AnInitContainerThatFailsIsNamedWithItsOutput) {
  Json pod = Pod("Failed");
  const Json terminated = {{"exitCode", 9}, {"message", "no such bucket\n"}};
  const Json waiting = {{"waiting", {{"reason", "PodInitializing"}}}};
  pod["status"]["containerStatuses"] = Json::array({{{"name", "tensorflow"}, {"state", waiting}}});
  Json& init = pod["status"]["initContainerStatuses"];
  init = Json::array({{{"name", "fetch"}, {"state", {{"terminated", terminated}}}}});
  const PodRecord failed = ReadPod(pod).value();
  EXPECT_EQ(failed.end.Describe(), "its init container fetch failed with exit code 9");
  EXPECT_EQ(failed.end.last_line, "no such bucket");
  EXPECT_EQ(failed.end.exit_code, -1);  // that of the task
  pod["status"]["phase"] = "Pending";
  init[0]["state"] = {{"waiting", {{"reason", "CrashLoopBackOff"}, {"message", "back-off 10s"}}}};
  init[0]["lastState"] = {{"terminated", terminated}};
  EXPECT_EQ(ReadPod(pod)->problem,
            "CrashLoopBackOff: init container fetch: back-off 10s; the last run: exit code 9, with "
            "'no such bucket'");
}

}  // namespace
}  // namespace muster::launch::kubernetes
