// A TFJob object of an API server, read as a JobSpec.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/job/job_spec.h"
#include "muster/job/tf_config.h"
#include "muster/launch/kubernetes/api/kube_object.h"

namespace muster::launch::kubernetes {

// So many tasks fit into a job's status, which the API server stores if it is smaller than 1.5 MiB.
inline constexpr int kMostTasks = 4000;

// Annotations `muster/NAME` beside those of job/annotations.h: ReadTrainingJob() knows them.
inline constexpr std::string_view kMasterAsChief = "masterAsChief";
inline constexpr std::string_view kNative = "native";
inline constexpr std::string_view kEvaluatorInCluster = "evaluatorInCluster";
inline constexpr std::string_view kStop = "stop";
inline constexpr std::string_view kOwnAnnotations[] = {kMasterAsChief, kNative, kEvaluatorInCluster,
                                                       kStop};

struct TrainingJob {
  std::string uid = {};
  job::JobSpec spec = {};
  job::TfConfigOptions tf_config = {};
  std::string stop = {};  // why the job is to end (the annotation muster/stop); "": it runs
  std::optional<bool> native = {};  // muster/native: whether its tasks run `muster worker`
  std::string runtime_id = {};      // v1alpha1's: spec.RuntimeId, or what it is to become
  std::vector<std::string> unknown_fields = {};  // left out: "spec.runPolicy.nap"
  std::vector<std::string> notes = {};           // settings without an effect
};

// Reads v1 and v1alpha1, told apart by `tfReplicaSpecs` and `replicaSpecs`, since one version alone
// is stored. Fields that it does not know are left out and named. INVALID_ARGUMENT for a job that
// Kubeflow's or Muster's own checks refuse; the message is for the job's status.
absl::StatusOr<TrainingJob> ReadTrainingJob(const Json& object);

// INVALID_ARGUMENT for a pod template that Kubeflow's validation refuses.
absl::Status CheckTemplate(const Json& pod_template);

// Takes over what `object` orders, whatever else is wrong with it: the annotation muster/stop and
// spec.runPolicy.suspend.
void ReadOrders(const Json& object, TrainingJob* job);

// Whether spec.runPolicy.managedBy leaves the job to another controller.
bool IsManagedElsewhere(const Json& object);

}  // namespace muster::launch::kubernetes
