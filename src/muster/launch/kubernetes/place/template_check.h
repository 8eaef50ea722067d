// Whether an API server takes the pods of a job, asked before the job is made: a TFJob keeps any
// template, and the fields that pods do not have would have no effect there; a claim that does not
// exist would keep them waiting.
#pragma once

#include <optional>

#include "muster/formats/yaml_reader.h"
#include "muster/launch/kubernetes/place/cluster.h"

namespace muster::launch::kubernetes {

// INVALID_ARGUMENT names the first field of a template of `job` that pods do not have, with the
// nearest of theirs, or says why the server would refuse the pod: at its line in the file, where
// there is one (`place` is the job's). It asks by a PodTemplate that is not kept (dryRun). Without
// the right to do so, or an answer, it is OK: then the operator says it in an event.
absl::Status CheckTemplates(const Json& job, const std::optional<formats::YamlReader>& place,
                            Cluster& cluster);

// INVALID_ARGUMENT names the first PersistentVolumeClaim of a template that the cluster's namespace
// does not have, at its line in the file. Without the right to see claims, or an answer, it is OK:
// then the pods say it.
absl::Status CheckClaimsOf(const Json& job, const std::optional<formats::YamlReader>& place,
                           Cluster& cluster);

}  // namespace muster::launch::kubernetes
