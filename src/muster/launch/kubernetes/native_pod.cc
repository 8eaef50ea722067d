#include "muster/launch/kubernetes/native_pod.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"

#include "muster/job/pod_template.h"
#include "muster/job/tf_config.h"
#include "muster/net/tls/certs.h"
#include "muster/net/token.h"

namespace muster::launch::kubernetes {
namespace {

constexpr std::string_view kVolume = "muster-secret";
constexpr std::string_view kFolder = "/var/run/muster";
constexpr std::string_view kKeyVariable = "MUSTER_KEY_FILE";
constexpr std::string_view kCertsVariable = "MUSTER_CERTS";
constexpr std::string_view kPlainTextVariable = "MUSTER_PLAIN_TEXT";
// Root may read it, and the pod's fsGroup; `muster worker` refuses a file that others may read.
constexpr int kSecretMode = 0440;
constexpr int kDays = 3650;  // a job's certificates are not renewed while it runs
constexpr size_t kUidLetters = 8;
constexpr size_t kMaxNameBytes = 64;  // of a certificate

std::string Basename(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool HasVariable(const Json& container, std::string_view name) {
  const Json& variables = Child(container, "env");
  return variables.is_array() &&
         std::any_of(variables.begin(), variables.end(),
                     [&](const Json& each) { return GetText(each, "name") == name; });
}

// A task of our own refuses plain text together with certificates.
bool AsksForPlainText(const Json& container) {
  const std::vector<std::string> words = GetWords(container);
  return std::ranges::find(words, "--plain-text") != words.end() ||
         HasVariable(container, kPlainTextVariable);
}

bool HasOwnKey(const Json& pod_template) {
  const Json* const container = FindContainer(pod_template);
  return container != nullptr && HasVariable(*container, kKeyVariable);
}

void AddToList(const char* field, Json entry, Json* object) {
  Json& list = (*object)[field];
  if (!list.is_array()) list = Json::array();
  list.push_back(std::move(entry));
}

std::string Encode(const std::string& text) { return absl::Base64Escape(text); }

}  // namespace

bool IsNative(const TrainingJob& job, job::TaskType type) {
  const auto replica = job.spec.replicas.find(type);
  if (replica == job.spec.replicas.end()) return false;
  if (job.native) return *job.native;
  const Json* const container = FindContainer(replica->second.pod_template);
  if (container == nullptr) return false;
  const std::vector<std::string> words = GetWords(*container);
  return words.size() >= 2 && Basename(words[0]) == "muster" && words[1] == "worker";
}

std::optional<int> GetMostWorkers(const TrainingJob& job) {
  if (!IsNative(job, job::TaskType::kWorker)) return std::nullopt;
  return job.spec.max_workers.value_or(0);
}

std::optional<TrainingJob> KeepTaskNumbers(const TrainingJob& job, const job::JobStatus& status,
                                           std::optional<int> most, std::string* note) {
  std::map<job::TaskType, int> told;
  bool has_begun = false;
  for (const auto& [id, task] : status.tasks) {
    has_begun = has_begun || task.incarnation > 0;
    told[id.type] = std::max(told[id.type], id.index + 1);
  }
  if (!has_begun) return std::nullopt;
  if (!most) most = GetMostWorkers(job);
  TrainingJob kept = job;
  for (auto& [type, replica] : kept.spec.replicas) {
    if (!IsNative(job, type)) continue;
    const int asked = replica.replicas;
    const bool may_change = type == job::TaskType::kWorker && *most > 0;
    if (type == job::TaskType::kWorker) kept.spec.max_workers = may_change ? most : std::nullopt;
    replica.replicas = may_change ? std::min(asked, *most) : told[type];
    if (replica.replicas == asked) continue;
    *note = StrCat("the number of replicas of ", job::TypeFieldName(type), " stays ",
                   replica.replicas, ", though ", asked,
                   " are asked for: tasks of Muster's own are told the number when they begin; it "
                   "may change for workers of a job that began with the annotation "
                   "muster/workers: MIN-MAX (muster train --workers MIN:MAX), up to that MAX");
  }
  if (kept.spec == job.spec) return std::nullopt;
  return kept;
}

bool UsesSecret(const TrainingJob& job, job::TaskType type) {
  return job.spec.total() > 1 && IsNative(job, type) &&
         !HasOwnKey(job.spec.replicas.at(type).pod_template);
}

bool NeedsSecret(const TrainingJob& job) {
  return std::any_of(job.spec.replicas.begin(), job.spec.replicas.end(),
                     [&](const auto& each) { return UsesSecret(job, each.first); });
}

std::string GetSecretName(const TrainingJob& job) {
  return StrCat(job.spec.name, "-muster-", job.uid.substr(0, kUidLetters));
}

Json MakeEmptySecret(const TrainingJob& job) {
  Json secret = {{"apiVersion", "v1"}, {"kind", "Secret"}, {"type", "Opaque"}, {"immutable", true}};
  secret["metadata"] = {
      {"name", GetSecretName(job)},
      {"labels",
       {{std::string(kOperatorLabel), kOperatorName}, {std::string(kJobLabel), job.spec.name}}},
      {"ownerReferences", MakeOwner(job)}};
  return secret;
}

absl::StatusOr<Json> MakeSecret(const TrainingJob& job, const PodPlanOptions& options) {
  std::vector<std::string> hosts;
  for (const auto& [task, address] : GetCluster(job, options)) {
    hosts.push_back(address.substr(0, address.rfind(':')));
  }
  const std::string name = job.spec.name.substr(0, kMaxNameBytes);
  MUSTER_ASSIGN_OR_RETURN(const net::Token key, net::Token::Make());
  MUSTER_ASSIGN_OR_RETURN(const net::Credentials authority, net::MakeAuthority(name, kDays));
  MUSTER_ASSIGN_OR_RETURN(
      const net::Credentials server,
      net::MakeCertificate(authority, {.name = name, .hosts = hosts, .days = kDays}));
  MUSTER_ASSIGN_OR_RETURN(
      const net::Credentials client,
      net::MakeCertificate(authority,
                           {.name = name, .use = net::CertificateUse::kClient, .days = kDays}));
  Json secret = MakeEmptySecret(job);
  secret["data"] = {
      {"data_key", Encode(key.Reveal())},         {"ca.pem", Encode(authority.certificate)},
      {"server.pem", Encode(server.certificate)}, {"server-key.pem", Encode(server.key)},
      {"client.pem", Encode(client.certificate)}, {"client-key.pem", Encode(client.key)}};
  return secret;
}

void AddNativeTask(const TrainingJob& job, job::TaskId task, int64_t incarnation, bool is_alone,
                   Json* pod_template) {
  Json* const container = job::GetContainer(pod_template);
  if (container == nullptr) return;
  const auto set = [&](std::string_view name, const std::string& value) {
    if (HasVariable(*container, name)) return;
    job::SetEnv(std::string(name), value, pod_template);
  };
  set("MUSTER_JOB", job.spec.name);
  set("MUSTER_TASK", job::TaskName(task));
  set("MUSTER_INCARNATION", StrCat(incarnation));
  if (is_alone) return;
  // Others may wait for a node or an image; the job's status says for which.
  set(job::kRendezvousVariable, "0");
  if (HasVariable(*container, kKeyVariable)) return;
  set(kKeyVariable, StrCat(kFolder, "/data_key"));
  if (!AsksForPlainText(*container)) set(kCertsVariable, std::string(kFolder));
  AddToList("volumeMounts", {{"name", kVolume}, {"mountPath", kFolder}, {"readOnly", true}},
            container);
  AddToList("volumes",
            {{"name", kVolume},
             {"secret", {{"secretName", GetSecretName(job)}, {"defaultMode", kSecretMode}}}},
            &(*pod_template)["spec"]);
}

}  // namespace muster::launch::kubernetes
