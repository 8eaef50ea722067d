// The pods of `muster train --on kubernetes`: a template of a person's, or an empty one, whose
// container `tensorflow` runs the training. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/launch/kubernetes/api/kube_object.h"

namespace muster::launch::kubernetes {

struct ClaimMount {
  std::string claim = {};  // of a PersistentVolumeClaim in the job's namespace
  std::string path = {};   // where the pods have it
  friend bool operator==(const ClaimMount&, const ClaimMount&) = default;
};

// "CLAIM:/PATH". INVALID_ARGUMENT for anything else.
absl::StatusOr<ClaimMount> ParseClaimMount(std::string_view text);

struct TrainingPod {
  Json pod_template = Json::object();  // metadata and spec, as in a TFJob
  std::string image = {};              // "": the template's
  std::vector<ClaimMount> volumes = {};
  std::vector<std::string> command = {};
  std::string model = {};           // the model file's text for `model_variable`; "": none
  std::string model_variable = {};  // an environment variable
};

// Without a securityContext in the template, the pod gets an fsGroup: so the user of Muster's
// images, who is not root, may read the job's Secret, and write to a new volume.
//
// INVALID_ARGUMENT if neither the template nor `image` names an image.
absl::StatusOr<Json> MakeTrainingTemplate(const TrainingPod& pod);

// Where the container of the training has volumes.
std::vector<std::string> GetMountPaths(const Json& pod_template);
// Whether one of these folders is or holds the path.
bool IsBelow(std::string_view path, const std::vector<std::string>& folders);

}  // namespace muster::launch::kubernetes
