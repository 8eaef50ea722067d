#include "muster/job/manifest_legacy.h"

#include <utility>

#include "absl/strings/ascii.h"

#include "muster/formats/yaml_json.h"
#include "muster/job/pod_template.h"

namespace muster::job {
namespace {

using formats::YamlReader;

// The pod's restart policy is that of the replica; a pod without one had OnFailure.
RestartPolicy ConsumeRestartPolicy(const YamlReader& node, Json* pod_template) {
  if (!node.Has("template") || !node.At("template").Has("spec")) return RestartPolicy::kOnFailure;
  const YamlReader pod = node.At("template").At("spec");
  if (!pod.Has("restartPolicy")) return RestartPolicy::kOnFailure;
  const RestartPolicy policy = ParseRestartPolicy(pod.At("restartPolicy"));
  if (node.ok()) (*pod_template)["spec"].erase("restartPolicy");
  return policy;
}

void ParseLegacyReplica(const YamlReader& node, Manifest* manifest) {
  node.CheckKeys({"replicas", "tfReplicaType", "tfPort", "template"});
  std::string name = node.String("tfReplicaType", "MASTER");
  const auto type = ParseTaskType(name);
  if (node.ok() && !type) {
    return node.At("tfReplicaType").Fail(StrCat("'", name, "' is not MASTER, WORKER or PS"));
  }
  if (!node.ok()) return;
  if (manifest->spec.replicas.contains(*type)) {
    return node.Fail(StrCat("a second ", name, "; give 'replicas: N' instead"));
  }
  ReplicaSpec replica;
  replica.replicas = static_cast<int>(node.Int("replicas", 1, 0, 100'000));
  if (node.Has("template")) {
    replica.pod_template = ReadPodTemplate(node.At("template"));
    replica.restart_policy = ConsumeRestartPolicy(node, &replica.pod_template);
  } else if (*type != TaskType::kPs) {
    return node.Fail("needs 'template'");
  } else {
    // The operator ran its built-in server there.
    return node.Fail(
        "a PS without a template ran the operator's own server, which is gone; give it "
        "the template of the MASTER");
  }
  if (const int64_t port = node.Int("tfPort", kDefaultPort, 1, 65535); port != kDefaultPort) {
    SetTaskPort(static_cast<int>(port), &replica.pod_template);
  }
  manifest->spec.replicas[*type] = std::move(replica);
}

// `chief: {replicaName: WORKER, replicaIndex: 0}` is the default of a job without a chief.
void ParseTermination(const YamlReader& node, const Manifest& manifest) {
  node.CheckKeys({"chief"});
  if (!node.Has("chief")) return;
  const YamlReader chief = node.At("chief");
  chief.CheckKeys({"replicaName", "replicaIndex"});
  const std::string name = chief.String("replicaName", "MASTER");
  const auto type = ParseTaskType(name);
  const auto leader = manifest.spec.leader();
  const bool fits = type && (leader ? *type == *leader : *type == TaskType::kWorker);
  if (chief.ok() && (!fits || chief.Int("replicaIndex", 0, 0, 100'000) != 0)) {
    chief.Fail(StrCat("the job ends with its ", leader ? TypeName(*leader) : "worker",
                      " 0; another task cannot be its chief"));
  }
}

}  // namespace

void ParseLegacySpec(const YamlReader& node, Manifest* manifest) {
  node.CheckKeys({"replicaSpecs", "tfImage", "RuntimeId", "runtimeId", "tensorboard",
                  "terminationPolicy", "schedulerName", "cleanupPodPolicy"});
  for (const YamlReader& item : node.At("replicaSpecs").Items()) {
    ParseLegacyReplica(item, manifest);
  }
  if (node.Has("cleanupPodPolicy")) {
    manifest->spec.clean_pod_policy =
        ParseWord(node.At("cleanupPodPolicy"),
                  {CleanPodPolicy::kAll, CleanPodPolicy::kRunning, CleanPodPolicy::kNone},
                  CleanPodPolicyName);
  }
  if (node.Has("terminationPolicy")) ParseTermination(node.At("terminationPolicy"), *manifest);
  if (node.Has("tensorboard")) {
    manifest->notes.push_back("spec.tensorboard is not used: 'muster tensorboard JOB' shows a job");
  }
  manifest->spec.legacy_labels = true;
}

}  // namespace muster::job
