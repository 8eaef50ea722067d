// Whether an API server takes the pods of a job, asked before the job is made: a TFJob keeps any
// template, and the fields that pods do not have would have no effect there; a claim that does not
// exist would keep them waiting.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "muster/formats/yaml_reader.h"
#include "muster/launch/kubernetes/place/cluster.h"

namespace muster::launch::kubernetes {

// Where the parts of a job stand in files; each is unset where there is no such file.
struct JobPlaces {
  std::optional<formats::YamlReader> job = {};
  std::optional<formats::YamlReader> pod_template = {};  // of a file that has the template alone
};

// INVALID_ARGUMENT names the first field of a template of `job` that pods do not have, with the
// nearest of theirs, or says why the server would refuse the pod: at its line in the file, where
// there is one. It asks by a PodTemplate that is not kept (dryRun). Without the right to do so, or
// an answer, it is OK: then the operator says it in an event.
absl::Status CheckTemplates(const Json& job, const JobPlaces& places, Cluster& cluster);

// `refusal` of the job by the server, at the line of the first field that it names, where there is
// a file. Other errors are returned as they are.
absl::Status LocateRefusal(const absl::Status& refusal, const JobPlaces& places);

// INVALID_ARGUMENT names the first PersistentVolumeClaim of a template that the cluster's namespace
// does not have, at its line in the file. Without the right to see claims, or an answer, it is OK:
// then the pods say it.
absl::Status CheckClaimsOf(const Json& job, const JobPlaces& places, Cluster& cluster);

// Adds to a job's description which PersistentVolumeClaim the namespace does not have, as the
// problem of each task that mounts it, has not begun and has no other problem: a scheduler that
// says it may be away, and its words are lost with its events. Claims that may not be seen count as
// there. `missing` keeps the answers, by claim, for the next job.
void AddMissingClaims(const Json& job, Cluster& cluster, std::map<std::string, bool>* missing,
                      Json* described);

}  // namespace muster::launch::kubernetes
