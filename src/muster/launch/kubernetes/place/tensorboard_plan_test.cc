#include "muster/launch/kubernetes/place/tensorboard_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::launch::kubernetes {
namespace {

using ::testing::HasSubstr;

Json MakeJob() {
  return Json::parse(R"json({"apiVersion": "kubeflow.org/v1", "kind": "TFJob",
    "metadata": {"name": "j", "namespace": "n", "uid": "u"},
    "spec": {"tfReplicaSpecs": {"Chief": {"template": {"spec": {
      "securityContext": {"fsGroup": 7}, "tolerations": [{"key": "gpu"}], "priorityClassName": "p",
      "imagePullSecrets": [{"name": "pull"}],
      "volumes": [{"name": "own", "emptyDir": {}},
                  {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
      "containers": [{"name": "tensorflow", "image": "i", "securityContext": {"runAsUser": 5},
        "command": ["muster", "worker", "spec.yaml", "--model-dir", "/data/model"],
        "resources": {"limits": {"nvidia.com/gpu": 1}},
        "volumeMounts": [{"name": "own", "mountPath": "/tmp"},
                         {"name": "v", "mountPath": "/data", "subPath": "a"}]}]}}}}}})json");
}

Json& GetContainer(Json& job) {
  return job["spec"]["tfReplicaSpecs"]["Chief"]["template"]["spec"]["containers"][0];
}

TEST(TensorBoardPlanTest, ItsPodReadsTheJobsVolume) {
  const auto plan =
      PlanTensorBoard(MakeJob(), {.image = "b", .arguments = {"--x", "$(Y)"}, .id = "a1"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->name, "j-tensorboard-a1");
  Json pod = plan->deployment["spec"]["template"]["spec"];
  const Json expected = Json::parse(R"json({"automountServiceAccountToken": false,
    "securityContext": {"fsGroup": 7}, "imagePullSecrets": [{"name": "pull"}],
    "tolerations": [{"key": "gpu"}],
    "containers": [{"name": "tensorboard", "image": "b",
      "command": ["--logdir", "/data/model", "--bind_all", "--port", "6006", "--x", "$$(Y)"],
      "terminationMessagePolicy": "FallbackToLogsOnError",
      "ports": [{"name": "http", "containerPort": 6006}],
      "readinessProbe": {"tcpSocket": {"port": "http"}, "periodSeconds": 2},
      "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}},
      "securityContext": {"runAsUser": 5},
      "volumeMounts": [{"name": "v", "mountPath": "/data", "subPath": "a", "readOnly": true}]}],
    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]})json");
  Json& command = pod["containers"][0]["command"];
  EXPECT_EQ(command[0], "python3");
  EXPECT_THAT(command[2].get<std::string>(), HasSubstr("run_main()"));
  command.erase(command.begin(), command.begin() + 3);
  EXPECT_EQ(pod, expected);
  const Json label = {{"muster/tensorboard", "j"}, {"muster/tensorboard-id", "a1"}};
  EXPECT_EQ(plan->service["spec"]["selector"], label);
  EXPECT_EQ(plan->deployment["spec"]["selector"]["matchLabels"], label);
  for (const Json* const object : {&plan->deployment, &plan->service}) {
    const Json& owner = (*object)["metadata"]["ownerReferences"][0];
    EXPECT_EQ(owner["uid"], "u");
    EXPECT_FALSE(owner.contains("controller"));
  }
}

TEST(TensorBoardPlanTest, TheModelFolderIsFoundInAnnotationsAndCommands) {
  Json job = MakeJob();
  EXPECT_EQ(FindModelDir(job), "/data/model");
  GetContainer(job)["command"] = {"python", "main.py"};
  EXPECT_EQ(FindModelDir(job), "");
  GetContainer(job)["args"] = {"--log_dir=/data/logs"};
  EXPECT_EQ(FindModelDir(job), "/data/logs");
  GetContainer(job)["command"] = {"/bin/muster", "worker", "s.yaml", "/data/m", "--train", "x"};
  EXPECT_EQ(FindModelDir(job), "/data/logs");
  GetContainer(job).erase("args");
  EXPECT_EQ(FindModelDir(job), "/data/m");
  job["metadata"]["annotations"]["muster/modelDir"] = "/data/said";
  EXPECT_EQ(FindModelDir(job), "/data/said");
}

TEST(TensorBoardPlanTest, AFolderThatNoOtherPodHasIsRefused) {
  const auto refuse = [](const Json& job, const std::string& folder) {
    const auto plan = PlanTensorBoard(job, {.model_dir = folder});
    EXPECT_TRUE(absl::IsFailedPrecondition(plan.status())) << plan.status();
    return std::string(plan.status().message());
  };
  EXPECT_THAT(refuse(MakeJob(), "/elsewhere"), HasSubstr("they are at /tmp, /data"));
  EXPECT_THAT(refuse(MakeJob(), "/tmp/x"), HasSubstr("emptyDir"));
  Json job = MakeJob();
  GetContainer(job)["command"] = {"python", "main.py"};
  EXPECT_THAT(refuse(job, ""), HasSubstr("--model-dir"));
  const auto remote = PlanTensorBoard(job, {.model_dir = "gs://b/model"});
  ASSERT_TRUE(remote.ok()) << remote.status();
  EXPECT_FALSE(remote->deployment["spec"]["template"]["spec"].contains("volumes"));
}

TEST(TensorBoardPlanTest, WhatKeepsItFromStartingIsSaidWithAdvice) {
  Json pod = {{"metadata", {{"name", "p"}}}};
  EXPECT_EQ(FindStartProblem(Json::object(), {pod}), "");
  pod["status"]["containerStatuses"] =
      Json::array({{{"name", "tensorboard"},
                    {"state", {{"waiting", {{"reason", "ErrImagePull"}, {"message", "no b"}}}}}}});
  EXPECT_THAT(FindStartProblem(Json::object(), {pod}), HasSubstr("ErrImagePull: no b (check the"));
  pod["status"]["containerStatuses"] = Json::parse(R"json([{"name": "tensorboard",
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
    "lastState": {"terminated": {"exitCode": 1, "message": "trace\nNo module named 'tensorboard'"}}
    }])json");
  EXPECT_EQ(FindStartProblem(Json::object(), {pod}),
            "CrashLoopBackOff: back-off 10s; the last run: exit code 1, with 'No module named "
            "'tensorboard'' (name an image that has TensorBoard with --image)");
  const Json failed = Json::parse(R"json({"status": {"conditions": [{"type": "ReplicaFailure",
    "status": "True", "message": "pods is forbidden: exceeded quota: q"}]}})json");
  EXPECT_THAT(FindStartProblem(failed, {}), HasSubstr("exceeded quota: q (ask for less"));
}

}  // namespace
}  // namespace muster::launch::kubernetes
