#include "muster/launch/kubernetes/training_job.h"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <utility>

#include "muster/base/crc32c.h"
#include "muster/base/nearest.h"
#include "muster/job/annotations.h"
#include "muster/job/manifest.h"
#include "muster/launch/kubernetes/native_pod.h"

namespace muster::launch::kubernetes {
namespace {

constexpr std::string_view kOwnManager = "kubeflow.org/training-operator";  // TFJob's name for it
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

std::string ReadStop(const Json& value) {
  const std::string reason = value.is_string() ? value.get<std::string>() : "";
  return reason.empty() ? "stopped by the annotation muster/stop" : reason;
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
    } else if (name == kNative) {
      job->native = value == "true";
    } else if (name == kEvaluatorInCluster) {
      job->tf_config.evaluator_in_cluster = value == "true";
    } else if (name == kStop) {
      job->stop = ReadStop(value);
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

absl::Status CheckSize(const job::JobSpec& spec) {
  if (spec.total() <= kMostTasks) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(
      "TFJobSpec is not valid: ", spec.total(), " replicas are asked for, and the status of ",
      kMostTasks, " at most fits into what an API server stores: ask for fewer"));
}

// TF_CONFIG and the certificates of native tasks name as many workers as muster/workers allows, and
// a training waits until it has the fewest that it allows.
void LimitWorkers(TrainingJob* job) {
  const auto workers = job->spec.replicas.find(job::TaskType::kWorker);
  if (workers == job->spec.replicas.end() || !job->spec.max_workers) return;
  int& replicas = workers->second.replicas;
  const int allowed =
      std::clamp(replicas, job->spec.min_workers.value_or(0), *job->spec.max_workers);
  if (replicas == allowed || !IsNative(*job, job::TaskType::kWorker)) return;
  job->notes.push_back(StrCat(replicas, " workers are asked for, but muster/workers allows ",
                              replicas > allowed ? "" : "no fewer than ", allowed,
                              ": that many run"));
  replicas = allowed;
}

// Settings that have an effect on machines of one's own alone.
void NoteUnused(TrainingJob* job) {
  if (!job->spec.files.empty() || !job->spec.archives.empty()) {
    job->notes.push_back(
        "muster/files and muster/archives have no effect in pods: put the files into the image or "
        "on "
        "a volume");
  }
  const bool evaluates = job->spec.replicas.contains(job::TaskType::kEvaluator);
  if (job->spec.finish_timeout_seconds && evaluates) {
    job->notes.push_back(
        "muster/finishTimeout does not end the evaluator: whether it still works is not seen in "
        "pods, "
        "so it runs until it ends by itself, or the job is stopped");
  }
}

}  // namespace

absl::StatusOr<TrainingJob> ReadTrainingJob(const Json& object) {
  TrainingJob job;
  job.uid = GetUid(object);
  const Json& metadata = Child(object, "metadata");
  const Json& spec = Child(object, "spec");
  const bool is_legacy = Child(spec, "replicaSpecs").is_array();
  Json manifest = {{"apiVersion", is_legacy ? "kubeflow.org/v1alpha1" : "kubeflow.org/v1"},
                   {"kind", "TFJob"}};
  manifest["metadata"] = {{"name", GetName(object)}, {"namespace", GetNamespace(object)}};
  if (Child(metadata, "labels").is_object()) {
    manifest["metadata"]["labels"] = Child(metadata, "labels");
  }
  if (Json kept = KeepAnnotations(Child(metadata, "annotations"), &job); !kept.empty()) {
    manifest["metadata"]["annotations"] = std::move(kept);
  }
  manifest["spec"] =
      is_legacy ? KeepLegacySpec(spec, &job.unknown_fields) : KeepSpec(spec, &job.unknown_fields);
  MUSTER_ASSIGN_OR_RETURN(
      job::Manifest read,
      job::ParseManifest(formats::PrintJson(manifest), StrCat("TFJob ", GetName(object))));
  job.spec = std::move(read.spec);
  job.notes = std::move(read.notes);
  MUSTER_RETURN_IF_ERROR(CheckSize(job.spec));
  LimitWorkers(&job);
  NoteUnused(&job);
  if (is_legacy) {
    job.runtime_id = GetText(spec, "RuntimeId");
    if (job.runtime_id.empty()) job.runtime_id = MakeRuntimeId(job.uid);
  } else {
    for (const auto& [type, replica] : job.spec.replicas) {
      MUSTER_RETURN_IF_ERROR(
          Annotate(CheckTemplate(replica.pod_template),
                   StrCat("TFJobSpec is not valid: ", job::TypeFieldName(type))));
    }
  }
  return job;
}

absl::Status CheckTemplate(const Json& pod_template) {
  const Json& spec = Child(pod_template, "spec");
  const Json& containers = Child(spec, "containers");
  if (!containers.is_array() || containers.empty()) {
    const std::string right = "containers";
    std::string given;  // in its place
    if (spec.is_object() && !spec.contains(right)) {
      for (const auto& [key, value] : spec.items()) {
        if (!Nearest(key, std::span(&right, 1)).empty())
          given = StrCat("; the key is 'containers', not '", key, "'");
      }
    }
    return absl::InvalidArgumentError(StrCat("containers definition expected", given));
  }
  bool found = false;
  for (const Json& container : containers) {
    if (GetText(container, "image").empty()) {
      return absl::InvalidArgumentError(
          StrCat("image is undefined in the container ", GetText(container, "name")));
    }
    found = found || GetText(container, "name") == "tensorflow";
  }
  if (!found) return absl::InvalidArgumentError("there is no container named tensorflow");
  return absl::OkStatus();
}

void ReadOrders(const Json& object, TrainingJob* job) {
  const Json& annotations = Child(Child(object, "metadata"), "annotations");
  const Json& stop = Child(annotations, StrCat(job::kAnnotationPrefix, kStop));
  if (!stop.is_null()) job->stop = ReadStop(stop);
  const Json& suspend = Child(Child(Child(object, "spec"), "runPolicy"), "suspend");
  job->spec.suspend = suspend.is_boolean() && suspend.get<bool>();
}

bool IsManagedElsewhere(const Json& object) {
  const std::string manager = GetText(Child(Child(object, "spec"), "runPolicy"), "managedBy");
  return !manager.empty() && manager != kOwnManager;
}

}  // namespace muster::launch::kubernetes
