#include "muster/launch/kubernetes/training_job.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "muster/base/crc32c.h"
#include "muster/job/annotations.h"
#include "muster/job/manifest.h"

namespace muster::launch::kubernetes {
namespace {

constexpr std::string_view kOwnManager = "kubeflow.org/training-operator";  // TFJob's name for it
constexpr std::string_view kMasterAsChief = "masterAsChief";
constexpr std::string_view kEvaluatorInCluster = "evaluatorInCluster";
constexpr size_t kRuntimeIdLetters = 4;

using Names = std::initializer_list<std::string_view>;

// The members of `object` that are known; the names of all others go to `unknown`.
Json Keep(const Json& object, Names known, const std::string& path,
          std::vector<std::string>* unknown) {
  if (!object.is_object()) return object;
  Json kept = Json::object();
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) {
      kept[name] = value;
    } else {
      unknown->push_back(StrCat(path, ".", name));
    }
  }
  return kept;
}

Json KeepSpec(const Json& spec, std::vector<std::string>* unknown) {
  Json kept =
      Keep(spec,
           {"tfReplicaSpecs", "runPolicy", "successPolicy", "enableDynamicWorker", "cleanPodPolicy",
            "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"},
           "spec", unknown);
  if (kept.contains("runPolicy")) {
    kept["runPolicy"] = Keep(kept["runPolicy"],
                             {"cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds",
                              "backoffLimit", "suspend", "schedulingPolicy", "managedBy"},
                             "spec.runPolicy", unknown);
  }
  if (!Child(kept, "tfReplicaSpecs").is_object()) return kept;
  for (auto& [name, replica] : kept["tfReplicaSpecs"].items()) {
    replica = Keep(replica, {"replicas", "restartPolicy", "template"},
                   StrCat("spec.tfReplicaSpecs.", name), unknown);
  }
  return kept;
}

Json KeepLegacySpec(const Json& spec, std::vector<std::string>* unknown) {
  Json kept = Keep(spec,
                   {"replicaSpecs", "tfImage", "RuntimeId", "tensorboard", "terminationPolicy",
                    "schedulerName", "cleanupPodPolicy"},
                   "spec", unknown);
  if (!Child(kept, "replicaSpecs").is_array()) return kept;
  for (Json& replica : kept["replicaSpecs"]) {
    replica = Keep(replica, {"replicas", "tfReplicaType", "tfPort", "template"},
                   "spec.replicaSpecs", unknown);
  }
  return kept;
}

// Takes the operator's own annotations, and leaves out those of Muster that nobody knows.
Json KeepAnnotations(const Json& annotations, TrainingJob* job) {
  Json kept = Json::object();
  if (!annotations.is_object()) return kept;
  for (const auto& [key, value] : annotations.items()) {
    const bool is_ours = key.starts_with(job::kAnnotationPrefix);
    const std::string name = is_ours ? key.substr(job::kAnnotationPrefix.size()) : "";
    if (name == kMasterAsChief) {
      job->tf_config.master_as_chief = value == "true";
    } else if (name == kEvaluatorInCluster) {
      job->tf_config.evaluator_in_cluster = value == "true";
    } else if (is_ours && !job::IsAnnotation(name)) {
      job->unknown_fields.push_back(StrCat("metadata.annotations.", key));
    } else if (key != "kubectl.kubernetes.io/last-applied-configuration") {
      kept[key] = value;
    }
  }
  return kept;
}

// Four letters and digits, as tf-operator chose them, but always the same for a job.
std::string MakeRuntimeId(const std::string& uid) {
  constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyz";
  uint32_t hash = Crc32c(uid);
  std::string id;
  for (size_t i = 0; i < kRuntimeIdLetters; ++i, hash /= kLetters.size()) {
    id += kLetters[hash % kLetters.size()];
  }
  return id;
}

// What Kubeflow's validation asks of templates.
absl::Status CheckTemplates(const job::JobSpec& spec) {
  for (const auto& [type, replica] : spec.replicas) {
    const Json& containers = Child(Child(replica.pod_template, "spec"), "containers");
    const std::string where = StrCat("TFJobSpec is not valid: ", job::TypeFieldName(type), ": ");
    if (!containers.is_array() || containers.empty()) {
      return absl::InvalidArgumentError(StrCat(where, "containers definition expected"));
    }
    bool found = false;
    for (const Json& container : containers) {
      if (TextOf(container, "image").empty()) {
        return absl::InvalidArgumentError(
            StrCat(where, "image is undefined in the container ", TextOf(container, "name")));
      }
      found = found || TextOf(container, "name") == "tensorflow";
    }
    if (!found) {
      return absl::InvalidArgumentError(StrCat(where, "there is no container named tensorflow"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TrainingJob> ReadTrainingJob(const Json& object) {
  TrainingJob job;
  job.uid = UidOf(object);
  const Json& metadata = Child(object, "metadata");
  const Json& spec = Child(object, "spec");
  const bool is_legacy = Child(spec, "replicaSpecs").is_array();
  Json manifest = {{"apiVersion", is_legacy ? "kubeflow.org/v1alpha1" : "kubeflow.org/v1"},
                   {"kind", "TFJob"}};
  manifest["metadata"] = {{"name", NameOf(object)}, {"namespace", NamespaceOf(object)}};
  if (Child(metadata, "labels").is_object()) {
    manifest["metadata"]["labels"] = Child(metadata, "labels");
  }
  if (Json kept = KeepAnnotations(Child(metadata, "annotations"), &job); !kept.empty()) {
    manifest["metadata"]["annotations"] = std::move(kept);
  }
  manifest["spec"] =
      is_legacy ? KeepLegacySpec(spec, &job.unknown_fields) : KeepSpec(spec, &job.unknown_fields);
  MUSTER_ASSIGN_OR_RETURN(job::Manifest read, job::ParseManifest(formats::PrintJson(manifest),
                                                                 StrCat("TFJob ", NameOf(object))));
  job.spec = std::move(read.spec);
  job.notes = std::move(read.notes);
  if (is_legacy) {
    job.runtime_id = TextOf(spec, "RuntimeId");
    if (job.runtime_id.empty()) job.runtime_id = MakeRuntimeId(job.uid);
  } else {
    MUSTER_RETURN_IF_ERROR(CheckTemplates(job.spec));
  }
  return job;
}

bool IsManagedElsewhere(const Json& object) {
  const std::string manager = TextOf(Child(Child(object, "spec"), "runPolicy"), "managedBy");
  return !manager.empty() && manager != kOwnManager;
}

}  // namespace muster::launch::kubernetes
