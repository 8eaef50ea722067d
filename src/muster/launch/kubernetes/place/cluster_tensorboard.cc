#include "muster/launch/kubernetes/place/cluster_tensorboard.h"

#include <utility>

namespace muster::launch::kubernetes {
namespace {

constexpr double kAnswerSeconds = 100;  // less than the forwarder waits
constexpr double kReadySeconds = 10;

// Whether one of the object's owners has the uid.
bool IsOwnedBy(const Json& object, const std::string& uid) {
  const Json& owners = Child(Child(object, "metadata"), "ownerReferences");
  if (!owners.is_array()) return false;
  for (const Json& owner : owners) {
    if (GetText(owner, "uid") == uid) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<Json> ClusterTensorBoard::MakeObject(const KubeKind& kind, const Json& object) {
  KubeClient& client = *cluster_.client;
  auto made = client.Create(GetTarget(kind, cluster_.name_space), object);
  if (made.ok()) return made;
  if (!absl::IsAlreadyExists(made.status())) return AddAdvice(made.status(), cluster_);
  const std::string target = GetTarget(kind, cluster_.name_space, plan_.name);
  auto there = client.Get(target);
  if (!there.ok()) return AddAdvice(there.status(), cluster_);
  if (!IsOwnedBy(*there, GetUid(job_))) {
    return absl::FailedPreconditionError(
        StrCat("there is another object ", kind.plural, "/", plan_.name, " in the namespace ",
               cluster_.name_space, ", which is not of this job: remove or rename it"));
  }
  const Json patch = {{"metadata", {{"uid", GetUid(*there)}}}, {"spec", Child(object, "spec")}};
  auto changed = client.MergePatch(target, patch);
  return changed.ok() ? changed : AddAdvice(changed.status(), cluster_);
}

absl::Status ClusterTensorBoard::Make() {
  MUSTER_RETURN_IF_ERROR(MakeObject(kServices, plan_.service).status());
  return MakeObject(kDeployments, plan_.deployment).status();
}

absl::StatusOr<bool> ClusterTensorBoard::IsReady() {
  const std::string target = GetProxyTarget(cluster_.name_space, plan_.name) + "/";
  const auto answer = cluster_.client->Fetch({.method = "GET", .target = target}, kReadySeconds);
  // A server's proxy may break off where nobody listens yet. FindProblem() asks the server itself.
  if (absl::IsDeadlineExceeded(answer.status()) || absl::IsUnavailable(answer.status())) {
    return false;
  }
  if (!answer.ok()) return AddAdvice(answer.status(), cluster_);
  const int status = answer->head.status;
  if (status == 401 || status == 403) {
    return AddAdvice(cluster_.client->ToStatus(answer->head, answer->body, StrCat("GET ", target)),
                     cluster_);
  }
  return status < 400;
}

absl::StatusOr<std::string> ClusterTensorBoard::FindProblem() {
  std::vector<Json> pods;
  const auto listed = cluster_.client->List(
      GetTarget(kPods, cluster_.name_space),
      StrCat(kTensorBoardLabel, "=", GetName(job_), ",", kTensorBoardIdLabel, "=", plan_.id),
      [&] { pods.clear(); }, [&](Json pod) { pods.push_back(std::move(pod)); });
  if (!listed.ok()) return AddAdvice(listed.status(), cluster_);
  const auto deployment =
      cluster_.client->Get(GetTarget(kDeployments, cluster_.name_space, plan_.name));
  if (!deployment.ok()) return AddAdvice(deployment.status(), cluster_);
  return FindStartProblem(*deployment, pods);
}

absl::StatusOr<bool> ClusterTensorBoard::HasJob() {
  const auto job = cluster_.client->Get(GetTarget(kTfJobs, cluster_.name_space, GetName(job_)));
  if (absl::IsNotFound(job.status())) return false;
  MUSTER_RETURN_IF_ERROR(job.status());
  return GetUid(*job) == GetUid(job_);
}

absl::StatusOr<std::unique_ptr<net::HttpForwarder>> ClusterTensorBoard::Forward(uint16_t port) {
  net::HttpForwarderOptions options = {.port = port,
                                       .prefix = GetProxyTarget(cluster_.name_space, plan_.name)};
  options.request_fields.emplace_back("X-TensorBoard-Feature-Flags");
  return net::HttpForwarder::Start(std::move(options),
                                   [client = cluster_.client](const net::HttpCall& call) {
                                     return client->Fetch(call, kAnswerSeconds);
                                   });
}

absl::Status ClusterTensorBoard::Remove() {
  absl::Status first;
  for (const KubeKind& kind : {kDeployments, kServices}) {
    const std::string target = GetTarget(kind, cluster_.name_space, plan_.name);
    const auto there = cluster_.client->Get(target);
    if (absl::IsNotFound(there.status())) continue;
    absl::Status status = there.status();
    if (there.ok() && !IsOwnedBy(*there, GetUid(job_))) continue;
    if (there.ok()) status = cluster_.client->Delete(target, GetUid(*there));
    if (absl::IsNotFound(status) || absl::IsAborted(status)) continue;
    if (!status.ok() && first.ok()) first = AddAdvice(status, cluster_);
  }
  return first;
}

}  // namespace muster::launch::kubernetes
