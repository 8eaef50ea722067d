#include "muster/job/manifest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"

#include "muster/base/nearest.h"
#include "muster/formats/yaml_json.h"
#include "muster/formats/yaml_reader.h"
#include "muster/job/annotations.h"
#include "muster/job/manifest_legacy.h"
#include "muster/job/pod_template.h"

namespace muster::job {
namespace {

using formats::YamlReader;
using formats::YamlToJson;

constexpr size_t kMaxManifestBytes = 1 << 20;

using Names = std::span<const std::string_view>;

void ParseMetadata(const YamlReader& node, Names other_annotations, JobSpec* spec) {
  spec->name = node.At("name").AsString();
  spec->name_space = node.String("namespace");
  spec->metadata = YamlToJson(node);
  if (!node.ok()) return;
  spec->metadata.erase("name");
  spec->metadata.erase("namespace");
  // Fields that an API server adds to those that a person wrote.
  for (const char* field : {"uid", "resourceVersion", "generation", "creationTimestamp",
                            "managedFields", "selfLink", "ownerReferences", "finalizers"}) {
    spec->metadata.erase(field);
  }
  if (!node.Has("annotations")) return;
  const YamlReader annotations = node.At("annotations");
  annotations.ForEach([&](const std::string& key, const YamlReader& value) {
    if (!key.starts_with(kAnnotationPrefix)) return;
    const std::string name = key.substr(kAnnotationPrefix.size());
    if (std::find(other_annotations.begin(), other_annotations.end(), name) !=
        other_annotations.end()) {
      return;
    }
    spec->metadata["annotations"].erase(key);
    ParseAnnotation(name, value, spec);
  });
  if (spec->metadata["annotations"].empty()) spec->metadata.erase("annotations");
}

void ParseRunPolicyField(const std::string& key, const YamlReader& value, JobSpec* spec) {
  if (key == "cleanPodPolicy") {
    spec->clean_pod_policy =
        ParseWord(value, {CleanPodPolicy::kAll, CleanPodPolicy::kRunning, CleanPodPolicy::kNone},
                  CleanPodPolicyName);
  } else if (key == "ttlSecondsAfterFinished") {
    spec->ttl_seconds = value.AsInt(0, int64_t{1} << 40);
  } else if (key == "activeDeadlineSeconds") {
    spec->active_deadline_seconds = value.AsInt(0, int64_t{1} << 40);
  } else if (key == "backoffLimit") {
    spec->backoff_limit = static_cast<int>(value.AsInt(0, 1 << 30));
  } else if (key == "suspend") {
    spec->suspend = value.AsBool();
  } else if (key == "schedulingPolicy") {
    value.CheckKeys(
        {"minAvailable", "queue", "minResources", "priorityClass", "scheduleTimeoutSeconds"});
    spec->scheduling_policy = YamlToJson(value);
  } else if (key == "managedBy") {
    spec->managed_by = value.AsString();
  }
}

ReplicaSpec ParseReplica(const YamlReader& node) {
  node.CheckKeys({"replicas", "restartPolicy", "template"});
  ReplicaSpec replica;
  replica.replicas = static_cast<int>(node.Int("replicas", 1, 0, 100'000));
  if (node.Has("restartPolicy")) {
    replica.restart_policy = ParseRestartPolicy(node.At("restartPolicy"));
  }
  replica.pod_template = ReadPodTemplate(node.At("template"));
  return replica;
}

void ParseReplicas(const YamlReader& node, JobSpec* spec) {
  node.ForEach([&](const std::string& key, const YamlReader& value) {
    const auto type = ParseTaskType(key);
    if (!type) {
      std::vector<std::string> known;
      for (const TaskType each : kTaskTypes) known.emplace_back(TypeFieldName(each));
      return value.Fail(StrCat("is no replica type", DidYouMean(key, known)));
    }
    if (spec->replicas.contains(*type)) return value.Fail("is given twice");
    spec->replicas[*type] = ParseReplica(value);
  });
}

void ParseSpec(const YamlReader& node, JobSpec* spec) {
  // Before v1 of training-operator 1.3 the run policy was in `spec` itself.
  node.CheckKeys({"tfReplicaSpecs", "runPolicy", "successPolicy", "enableDynamicWorker",
                  "cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds",
                  "backoffLimit"});
  ParseReplicas(node.At("tfReplicaSpecs"), spec);
  const auto policy = [&](const std::string& key, const YamlReader& value) {
    ParseRunPolicyField(key, value, spec);
  };
  node.ForEach(policy);
  if (node.Has("runPolicy")) {
    const YamlReader run_policy = node.At("runPolicy");
    run_policy.CheckKeys({"cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds",
                          "backoffLimit", "suspend", "schedulingPolicy", "managedBy"});
    run_policy.ForEach(policy);
  }
  spec->dynamic_workers = node.Bool("enableDynamicWorker", false);
  const std::string success = node.String("successPolicy");
  spec->all_workers = success == "AllWorkers";
  if (!success.empty() && !spec->all_workers) {
    node.At("successPolicy").Fail(StrCat("'", success, "' is neither \"\" nor AllWorkers"));
  }
}

absl::StatusOr<Manifest> ParseTfJob(const YamlReader& root, const std::string& name,
                                    Names other_annotations) {
  Manifest manifest;
  root.CheckKeys({"apiVersion", "kind", "metadata", "spec", "status"});
  const std::string version = root.At("apiVersion").AsString();
  // An API server that stores v1 gives the older form back under that name.
  const bool is_legacy = version == "kubeflow.org/v1alpha1" ||
                         (root.Has("spec") && root.At("spec").Has("replicaSpecs"));
  const std::vector<std::string> known = {"kubeflow.org/v1", "kubeflow.org/v1beta2",
                                          "kubeflow.org/v1beta1", "kubeflow.org/v1alpha2",
                                          "kubeflow.org/v1alpha1"};
  if (root.ok() && Nearest(version, known) != version) {
    root.At("apiVersion")
        .Fail(StrCat("unknown version '", version, "'", DidYouMean(version, known)));
  }
  if (root.ok()) ParseMetadata(root.At("metadata"), other_annotations, &manifest.spec);
  if (root.ok()) {
    if (is_legacy) {
      ParseLegacySpec(root.At("spec"), &manifest);
    } else {
      ParseSpec(root.At("spec"), &manifest.spec);
    }
  }
  MUSTER_RETURN_IF_ERROR(root.status());
  MUSTER_RETURN_IF_ERROR(Validate(manifest.spec, name));
  return manifest;
}

// A document of a file, or an item of a List, which `kubectl get -o yaml` prints.
absl::Status AppendObjects(const YamlReader& document, std::vector<YamlReader>* objects) {
  if (!document.IsMap() || document.String("kind") != "List") {
    objects->push_back(document);
    return absl::OkStatus();
  }
  for (const YamlReader& item : document.At("items").Items()) objects->push_back(item);
  return document.status();
}

Json ReplicaJson(const ReplicaSpec& replica) {
  Json json = Json::object();
  json["replicas"] = replica.replicas;
  json["restartPolicy"] = RestartPolicyName(replica.restart_policy);
  json["template"] = replica.pod_template;
  return json;
}

Json RunPolicyJson(const JobSpec& spec) {
  Json json = Json::object();
  if (spec.clean_pod_policy != CleanPodPolicy::kNone) {
    json["cleanPodPolicy"] = CleanPodPolicyName(spec.clean_pod_policy);
  }
  if (spec.ttl_seconds) json["ttlSecondsAfterFinished"] = *spec.ttl_seconds;
  if (spec.active_deadline_seconds) json["activeDeadlineSeconds"] = *spec.active_deadline_seconds;
  if (spec.backoff_limit) json["backoffLimit"] = *spec.backoff_limit;
  if (spec.suspend) json["suspend"] = true;
  if (!spec.managed_by.empty()) json["managedBy"] = spec.managed_by;
  if (!spec.scheduling_policy.is_null()) json["schedulingPolicy"] = spec.scheduling_policy;
  return json;
}

}  // namespace

RestartPolicy ParseRestartPolicy(const YamlReader& node) {
  return ParseWord(node,
                   {RestartPolicy::kAlways, RestartPolicy::kOnFailure, RestartPolicy::kNever,
                    RestartPolicy::kExitCode},
                   RestartPolicyName);
}

absl::StatusOr<Manifest> ParseManifest(std::string_view text, const std::string& name,
                                       Names other_annotations) {
  if (text.size() > kMaxManifestBytes) {
    return absl::InvalidArgumentError(
        StrCat(name, ": ", text.size(), " bytes; a manifest has at most ", kMaxManifestBytes));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<YamlReader> parsed, YamlReader::ParseAll(text, name));
  std::vector<YamlReader> documents;
  for (const YamlReader& document : parsed) {
    MUSTER_RETURN_IF_ERROR(AppendObjects(document, &documents));
  }
  const YamlReader* job = nullptr;
  std::vector<std::string> others;
  for (const YamlReader& document : documents) {
    if (!document.IsMap() && documents.size() > 1) continue;  // an empty one
    const std::string kind = document.String("kind");
    if (kind != "TFJob" && documents.size() > 1) {
      others.push_back(kind.empty() ? "a document without a kind" : kind);
    } else if (job != nullptr) {
      document.Fail("is a second TFJob; give one in a file");
      return document.status();
    } else {
      job = &document;
    }
  }
  if (job == nullptr) {
    return absl::InvalidArgumentError(StrCat(
        name, ": holds no TFJob, but ", others.empty() ? "nothing" : absl::StrJoin(others, ", ")));
  }
  if (job->IsMap() && !job->Has("kind") && job->Has("inputs") && job->Has("model")) {
    return absl::InvalidArgumentError(StrCat(name, ": is a model file, and no TFJob: muster train ",
                                             name, " --train DATA --model-dir FOLDER trains it"));
  }
  if (const std::string kind = job->At("kind").AsString(); job->ok() && kind != "TFJob") {
    job->At("kind").Fail(StrCat("is '", kind, "', must be TFJob"));
  }
  MUSTER_ASSIGN_OR_RETURN(Manifest manifest, ParseTfJob(*job, name, other_annotations));
  if (!others.empty()) {
    manifest.notes.push_back(StrCat(name, ": beside the TFJob are ", absl::StrJoin(others, ", "),
                                    ", which are not used"));
  }
  return manifest;
}

Json ManifestJson(const JobSpec& spec) {
  Json json = {{"apiVersion", "kubeflow.org/v1"}, {"kind", "TFJob"}};
  Json& metadata = json["metadata"];
  metadata["name"] = spec.name;
  if (!spec.name_space.empty()) metadata["namespace"] = spec.name_space;
  for (const auto& [key, value] : spec.metadata.items()) metadata[key] = value;
  Json annotations = metadata.value("annotations", Json::object());
  PrintAnnotations(spec, &annotations);
  if (!annotations.empty()) metadata["annotations"] = std::move(annotations);
  Json& body = json["spec"];
  body = Json::object();
  if (Json policy = RunPolicyJson(spec); !policy.empty()) body["runPolicy"] = std::move(policy);
  if (spec.all_workers) body["successPolicy"] = "AllWorkers";
  if (spec.dynamic_workers) body["enableDynamicWorker"] = true;
  for (const auto& [type, replica] : spec.replicas) {
    body["tfReplicaSpecs"][std::string(TypeFieldName(type))] = ReplicaJson(replica);
  }
  return json;
}

std::string PrintManifest(const JobSpec& spec) { return formats::JsonToYaml(ManifestJson(spec)); }

}  // namespace muster::job
