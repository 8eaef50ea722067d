// Manifest: converts a TFJob file (YAML or JSON) to a JobSpec and back.
//
// It reads kubeflow.org/v1 (also the forms of v1alpha2, v1beta1, v1beta2 and of older v1, whose run
// policy is in `spec` itself) and v1alpha1 (`replicaSpecs` with `tfReplicaType`). TFJob's own
// fields are read strictly; pod templates and labels are kept as they are; `status` is ignored. A
// file may hold other documents besides the one TFJob, and lists of kind List, as accepted by
// `kubectl apply`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/job/job_spec.h"

namespace muster::job {

struct Manifest {
  JobSpec spec;
  std::vector<std::string> notes;  // settings that were read but are not used, one line each
};

// `name` is the file's name in messages. INVALID_ARGUMENT "NAME:LINE: ..." suggests the nearest
// valid name for an unknown field. At most 1 MiB, Kubernetes' own limit for an object.
// `other_annotations`: names after `muster/` that are somebody else's to read.
absl::StatusOr<Manifest> ParseManifest(std::string_view text, const std::string& name,
                                       std::span<const std::string_view> other_annotations = {});

// kubeflow.org/v1 YAML that parses to an equal spec; settings that TFJob lacks become annotations
// if they differ from their defaults.
std::string PrintManifest(const JobSpec& spec);
Json ManifestJson(const JobSpec& spec);

}  // namespace muster::job
