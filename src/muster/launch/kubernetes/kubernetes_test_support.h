// For tests of the operator's parts: objects as an API server sends them.
#pragma once

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "muster/launch/kubernetes/job_plan.h"
#include "muster/launch/kubernetes/pod_plan.h"
#include "muster/launch/kubernetes/training_job.h"

namespace muster::launch::kubernetes {

inline constexpr job::TaskId kWorker0 = {job::TaskType::kWorker, 0};
inline constexpr job::TaskId kWorker1 = {job::TaskType::kWorker, 1};

inline Json ReplicaObject(int replicas, const std::string& policy = "ExitCode") {
  const Json container = {{"name", "tensorflow"}, {"image", "i"}, {"command", {"main"}}};
  Json replica = {{"replicas", replicas}, {"restartPolicy", policy}};
  replica["template"]["spec"]["containers"] = Json::array({container});
  return replica;
}

inline Json JobObject(const Json& replicas, const Json& run_policy = Json::object()) {
  Json job = {{"apiVersion", "kubeflow.org/v1"}, {"kind", "TFJob"}};
  job["metadata"] = {
      {"name", "j"}, {"namespace", "team"}, {"uid", "job-uid"}, {"resourceVersion", "10"}};
  job["spec"]["tfReplicaSpecs"] = replicas;
  if (!run_policy.empty()) job["spec"]["runPolicy"] = run_policy;
  return job;
}

inline TrainingJob ReadJobObject(const Json& object) {
  auto job = ReadTrainingJob(object);
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? *std::move(job) : TrainingJob();
}

// The pod as the server returns it: with uid and version, in this phase.
inline Json PodObject(const TrainingJob& job, job::TaskId task, int64_t incarnation,
                      const std::string& uid, int64_t version, const std::string& phase) {
  auto pod = MakePod(job, task, incarnation, {});
  EXPECT_TRUE(pod.ok()) << pod.status();
  (*pod)["metadata"]["namespace"] = "team";
  (*pod)["metadata"]["uid"] = uid;
  (*pod)["metadata"]["resourceVersion"] = StrCat(version);
  (*pod)["status"]["phase"] = phase;
  return *std::move(pod);
}

inline void SetTerminated(int code, const std::string& reason, const std::string& message,
                          Json* pod) {
  Json& status = (*pod)["status"];
  status["phase"] = code == 0 ? "Succeeded" : "Failed";
  status["containerStatuses"] = Json::array(
      {{{"name", "tensorflow"},
        {"restartCount", 2},
        {"state",
         {{"terminated", {{"exitCode", code}, {"reason", reason}, {"message", message}}}}}}});
}

}  // namespace muster::launch::kubernetes
