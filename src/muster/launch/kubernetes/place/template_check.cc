#include "muster/launch/kubernetes/place/template_check.h"

#include <charconv>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"

#include "muster/base/nearest.h"
#include "muster/launch/kubernetes/training_job.h"

namespace muster::launch::kubernetes {
namespace {

using formats::YamlReader;

constexpr KubeKind kPodTemplates = {"v1", "podtemplates"};
constexpr std::string_view kTemplate = "template.";  // before a field, in the server's words
constexpr std::string_view kUnknown = "unknown field \"template.";

// Those that people write, of pods and their parts, for a suggestion.
constexpr const char* kFields[] = {"activeDeadlineSeconds",
                                   "affinity",
                                   "annotations",
                                   "args",
                                   "capabilities",
                                   "claimName",
                                   "command",
                                   "configMap",
                                   "configMapKeyRef",
                                   "configMapRef",
                                   "containerPort",
                                   "containers",
                                   "dnsPolicy",
                                   "emptyDir",
                                   "env",
                                   "envFrom",
                                   "fieldPath",
                                   "fieldRef",
                                   "fsGroup",
                                   "hostIPC",
                                   "hostNetwork",
                                   "hostPath",
                                   "image",
                                   "imagePullPolicy",
                                   "imagePullSecrets",
                                   "initContainers",
                                   "items",
                                   "key",
                                   "labels",
                                   "lifecycle",
                                   "limits",
                                   "livenessProbe",
                                   "metadata",
                                   "mountPath",
                                   "name",
                                   "nodeAffinity",
                                   "nodeName",
                                   "nodeSelector",
                                   "operator",
                                   "persistentVolumeClaim",
                                   "podAffinity",
                                   "podAntiAffinity",
                                   "ports",
                                   "priorityClassName",
                                   "privileged",
                                   "protocol",
                                   "readOnly",
                                   "readOnlyRootFilesystem",
                                   "readinessProbe",
                                   "requests",
                                   "resources",
                                   "restartPolicy",
                                   "runAsGroup",
                                   "runAsNonRoot",
                                   "runAsUser",
                                   "runtimeClassName",
                                   "schedulerName",
                                   "secret",
                                   "secretKeyRef",
                                   "secretName",
                                   "secretRef",
                                   "securityContext",
                                   "serviceAccountName",
                                   "shareProcessNamespace",
                                   "sizeLimit",
                                   "spec",
                                   "startupProbe",
                                   "subPath",
                                   "terminationGracePeriodSeconds",
                                   "terminationMessagePolicy",
                                   "tolerations",
                                   "topologySpreadConstraints",
                                   "value",
                                   "valueFrom",
                                   "volumeMounts",
                                   "volumes",
                                   "workingDir"};

// The field that begins at `begin`: "spec.containers[0].imagePulPolicy".
std::string ReadPath(std::string_view text, size_t begin) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.[]-_/";
  return std::string(text.substr(begin, text.find_first_not_of(kLetters, begin) - begin));
}

// The node at `path`, or the deepest one on the way that is there. Some of the server's messages
// leave out which item of a list it is.
YamlReader FindDeepest(YamlReader node, std::string_view path) {
  for (const auto part : absl::StrSplit(ToAbsl(path), absl::ByAnyChar(".["), absl::SkipEmpty())) {
    size_t index = 0;
    const bool is_index = part.back() == ']';
    if (!is_index && node.node().IsSequence() && node.node().size() == 1) node = node.Items()[0];
    if (is_index) std::from_chars(part.data(), part.data() + part.size(), index);
    if (is_index && node.node().IsSequence() && index < node.node().size()) {
      node = node.Items()[index];
    } else if (!is_index && node.Has(ToStd(part))) {
      node = node.At(ToStd(part));
    } else {
      break;
    }
  }
  return node;
}

// The templates of a job, by their paths.
std::vector<std::pair<std::string, Json>> GetTemplates(const Json& job) {
  std::vector<std::pair<std::string, Json>> templates;
  const auto add = [&](const std::string& path, const Json& replica) {
    const Json& pod_template = Child(replica, "template");
    if (pod_template.is_object()) templates.emplace_back(StrCat(path, ".template"), pod_template);
  };
  const Json& spec = Child(job, "spec");
  if (const Json& replicas = Child(spec, "tfReplicaSpecs"); replicas.is_object()) {
    for (const auto& [type, replica] : replicas.items()) {
      add(StrCat("spec.tfReplicaSpecs.", type), replica);
    }
  }
  if (const Json& replicas = Child(spec, "replicaSpecs"); replicas.is_array()) {
    for (size_t i = 0; i < replicas.size(); ++i) {
      add(StrCat("spec.replicaSpecs[", i, "]"), replicas[i]);
    }
  }
  return templates;
}

// By volume, the claim that it names; "" for none.
std::vector<std::string> GetClaims(const Json& pod_template) {
  std::vector<std::string> claims;
  const Json& volumes = Child(Child(pod_template, "spec"), "volumes");
  if (!volumes.is_array()) return claims;
  for (const Json& volume : volumes) {
    claims.push_back(GetText(Child(volume, "persistentVolumeClaim"), "claimName"));
  }
  return claims;
}

std::string DescribeMissing(const std::string& claim, const std::string& name_space) {
  return StrCat("there is no claim ", claim, " in the namespace ", name_space,
                ": make it first, or name another one (kubectl get persistentvolumeclaims "
                "--namespace ",
                name_space, ")");
}

// What the server says of a template: the first field that it does not know, or why it refuses it.
struct Complaint {
  std::string path = {};  // within the template; "": not known
  std::string message = {};
};
std::optional<Complaint> FindComplaint(const absl::Status& refusal,
                                       const std::vector<std::string>& warnings) {
  if (absl::IsInvalidArgument(refusal)) {
    const std::string_view message = ToStd(refusal.message());
    const size_t field = message.find(kTemplate);
    return Complaint{
        .path = field == message.npos ? "" : ReadPath(message, field + kTemplate.size()),
        .message = StrCat("its pods would be refused: ", message)};
  }
  for (const std::string& warning : warnings) {
    if (!warning.starts_with(kUnknown)) continue;
    const std::string path = ReadPath(warning, kUnknown.size());
    const std::string name = path.substr(path.rfind('.') + 1);
    const std::vector<std::string> known(std::begin(kFields), std::end(kFields));
    return Complaint{.path = path,
                     .message = StrCat("pods have no field '", name, "'", DidYouMean(name, known))};
  }
  return std::nullopt;
}

// `path`: of a template within the job; `within`: of a field within that.
absl::Status Refuse(const std::string& path, const std::string& within, const std::string& message,
                    const JobPlaces& places) {
  const std::string whole = within.empty() ? path : StrCat(path, ".", within);
  if (!places.job && !places.pod_template) {
    return absl::InvalidArgumentError(StrCat(whole, ": ", message));
  }
  const YamlReader& place = places.job ? *places.job : *places.pod_template;
  FindDeepest(place, places.job ? whole : within).Fail(message);
  return place.status();
}

}  // namespace

absl::Status LocateRefusal(const absl::Status& refusal, const JobPlaces& places) {
  constexpr std::string_view kInvalid = " is invalid: ";
  const std::string_view message = ToStd(refusal.message());
  const size_t found = message.find(kInvalid);
  if (!absl::IsInvalidArgument(refusal) || found == message.npos || !places.job) return refusal;
  std::string_view why = message.substr(found + kInvalid.size());
  if (why.starts_with('[')) why.remove_prefix(1);
  // What follows are the checks that the server left out because of this.
  why = why.substr(0, why.find(", <nil>: "));
  FindDeepest(*places.job, ReadPath(why, 0)).Fail(StrCat("the API server refuses it: ", why));
  return places.job->status();
}

absl::Status CheckTemplates(const Json& job, const JobPlaces& places, Cluster& cluster) {
  const std::string target =
      StrCat(GetTarget(kPodTemplates, cluster.name_space), "?dryRun=All&fieldValidation=Warn");
  for (auto& [path, pod_template] : GetTemplates(job)) {
    Json spec = Child(pod_template, "spec");
    if (!spec.is_object()) continue;
    spec.erase("restartPolicy");  // the replica's counts
    Json object = {{"apiVersion", kPodTemplates.group_version}, {"kind", "PodTemplate"}};
    object["metadata"]["generateName"] = "muster-";
    object["template"] = pod_template;
    object["template"]["spec"] = std::move(spec);
    std::vector<std::string> warnings;
    const auto tried = cluster.client->Create(target, object, &warnings);
    const auto complaint = FindComplaint(tried.status(), warnings);
    if (!complaint) {
      if (!tried.ok()) return absl::OkStatus();  // it is not known
      continue;
    }
    return Refuse(path, complaint->path, complaint->message, places);
  }
  return absl::OkStatus();
}

absl::Status CheckClaimsOf(const Json& job, const JobPlaces& places, Cluster& cluster) {
  for (const auto& [path, pod_template] : GetTemplates(job)) {
    const std::vector<std::string> claims = GetClaims(pod_template);
    for (size_t i = 0; i < claims.size(); ++i) {
      if (claims[i].empty()) continue;
      const auto found = cluster.client->Get(GetTarget(kClaims, cluster.name_space, claims[i]));
      // A namespace that is not there is named when the job is made.
      if (!absl::IsNotFound(found.status()) ||
          AddAdvice(found.status(), cluster) != found.status()) {
        continue;
      }
      return Refuse(path, StrCat("spec.volumes[", i, "].persistentVolumeClaim.claimName"),
                    DescribeMissing(claims[i], cluster.name_space), places);
    }
  }
  return absl::OkStatus();
}

void AddMissingClaims(const Json& job, Cluster& cluster, std::map<std::string, bool>* missing,
                      Json* described) {
  std::optional<absl::StatusOr<TrainingJob>> read;
  for (Json& task : (*described)["tasks"]) {
    const auto id = job::ParseTaskName(GetText(task, "task"));
    if (!id || GetText(task, "phase") != "starting" || task.contains("problem")) continue;
    if (!read) read = ReadTrainingJob(job);
    if (!read->ok()) return;
    const auto replica = (*read)->spec.replicas.find(id->type);
    if (replica == (*read)->spec.replicas.end()) continue;
    for (const std::string& claim : GetClaims(replica->second.pod_template)) {
      if (claim.empty()) continue;
      const auto [known, is_new] = missing->try_emplace(claim);
      if (is_new) {
        const auto found = cluster.client->Get(GetTarget(kClaims, cluster.name_space, claim));
        known->second = absl::IsNotFound(found.status());
      }
      if (known->second) task["problem"] = DescribeMissing(claim, cluster.name_space);
    }
  }
}

}  // namespace muster::launch::kubernetes
