// Manifest: a TFJob file (YAML or JSON) to a JobSpec and back.
//
// Read are kubeflow.org/v1 (also the forms of v1beta1 and v1beta2 and of older v1, whose run policy
// stands in `spec` itself) and v1alpha1 (`replicaSpecs` with `tfReplicaType`). TFJob's own fields
// are read strictly; pod templates and labels are kept as they are; `status` is ignored. A file may
// hold other documents beside the one TFJob, as `kubectl apply` takes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/job/job_spec.h"

namespace muster::job {

struct Manifest {
  JobSpec spec;
  std::vector<std::string> notes;  // what was read and is not used, a line each
};

// `name` is the file in messages. INVALID_ARGUMENT "NAME:LINE: ..." with the nearest right word for
// an unknown field. At most 1 MiB, Kubernetes' own limit for an object.
absl::StatusOr<Manifest> ParseManifest(std::string_view text, const std::string& name);

// kubeflow.org/v1 YAML that parses to an equal spec; what differs from its default is an
// annotation.
std::string PrintManifest(const JobSpec& spec);
Json ManifestJson(const JobSpec& spec);

}  // namespace muster::job
