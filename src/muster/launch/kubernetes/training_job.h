// A TFJob object of an API server, read as a JobSpec.
#pragma once

#include <string>
#include <vector>

#include "muster/job/job_spec.h"
#include "muster/job/tf_config.h"
#include "muster/launch/kubernetes/api/kube_object.h"

namespace muster::launch::kubernetes {

struct TrainingJob {
  std::string uid = {};
  job::JobSpec spec = {};
  job::TfConfigOptions tf_config = {};
  std::string runtime_id = {};  // v1alpha1's: spec.RuntimeId, or what it is to become
  std::vector<std::string> unknown_fields = {};  // left out: "spec.runPolicy.nap"
  std::vector<std::string> notes = {};           // settings without an effect
};

// Reads v1 and v1alpha1, told apart by `tfReplicaSpecs` and `replicaSpecs`, since one version alone
// is stored. Fields that it does not know are left out and named. INVALID_ARGUMENT for a job that
// Kubeflow's or Muster's own checks refuse; the message is for the job's status.
absl::StatusOr<TrainingJob> ReadTrainingJob(const Json& object);

// Whether spec.runPolicy.managedBy leaves the job to another controller.
bool IsManagedElsewhere(const Json& object);

}  // namespace muster::launch::kubernetes
