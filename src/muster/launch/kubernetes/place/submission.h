// Submission: a TFJob file becomes an object of a cluster.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/launch/kubernetes/place/cluster.h"
#include "muster/launch/kubernetes/place/template_check.h"
#include "muster/launch/kubernetes/place/training_template.h"

namespace muster::launch::kubernetes {

struct JobFile {
  Json job = {};                        // kubeflow.org/v1 or v1alpha1, as the file has it
  std::vector<std::string> notes = {};  // for people: what of the file is not submitted
  JobPlaces places = {};
};

// Reads the one TFJob of a YAML or JSON file, `name` in messages. INVALID_ARGUMENT "NAME:LINE: ..."
// for what the operator would refuse or has no use for.
absl::StatusOr<JobFile> ReadJobFile(std::string_view text, const std::string& name);

// INVALID_ARGUMENT for a name that no object of a cluster can have, at its line in the file.
absl::Status CheckJobName(const JobFile& file);

// Makes the object in the cluster's namespace. Returns it as the server has it. ALREADY_EXISTS if
// the namespace has a job of that name; INVALID_ARGUMENT if the job names another namespace or a
// claim that does not exist, or if the server would refuse its pods or leave a field of a template
// out (template_check.h).
absl::StatusOr<Json> SubmitJob(const JobFile& file, Cluster& cluster);

// NOT_FOUND for the first of the claims that the namespace does not have. Without the right to see
// claims it is the pods that say so.
absl::Status CheckClaims(const std::vector<ClaimMount>& mounts, const ClusterFlags& flags);

}  // namespace muster::launch::kubernetes
