#include "muster/launch/kubernetes/own_namespaces.h"

#include "absl/time/time.h"

namespace muster::launch::kubernetes {
namespace {

constexpr KubeKind kNamespaces = {"v1", "namespaces"};
constexpr KubeKind kWebhooks = {"admissionregistration.k8s.io/v1",
                                "validatingwebhookconfigurations"};
constexpr char kKubeflowNamespace[] = "kubeflow";
constexpr char kKubeflowLease[] = "1ca428e5.training-operator.kubeflow.org";
constexpr char kKubeflowWebhook[] = "validator.training-operator.kubeflow.org";
constexpr double kLeaseSeconds = 300;  // a lease that is older was left behind
constexpr char kLabel[] = "muster/operator=enabled";

bool IsRenewed(const Json& lease, double wall_seconds) {
  const Json& spec = Child(lease, "spec");
  absl::Time renewed;
  std::string error;
  if (GetText(spec, "holderIdentity").empty() ||
      !absl::ParseTime(absl::RFC3339_full, GetText(spec, "renewTime"), &renewed, &error)) {
    return false;
  }
  return absl::FromUnixSeconds(static_cast<int64_t>(wall_seconds)) - renewed <
         absl::Seconds(kLeaseSeconds);
}

bool IsAbsentOrHidden(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsPermissionDenied(status);
}

}  // namespace

absl::StatusOr<std::string> FindKubeflow(KubeClient& client, double wall_seconds) {
  const auto lease = client.Get(GetTarget(kLeases, kKubeflowNamespace, kKubeflowLease));
  if (!lease.ok() && !IsAbsentOrHidden(lease.status())) return lease.status();
  if (lease.ok() && IsRenewed(*lease, wall_seconds)) {
    return StrCat("its Lease ", kKubeflowNamespace, "/", kKubeflowLease);
  }
  const auto webhook = client.Get(GetTarget(kWebhooks, "", kKubeflowWebhook));
  if (!webhook.ok() && !IsAbsentOrHidden(webhook.status())) return webhook.status();
  if (webhook.ok()) return StrCat("its ValidatingWebhookConfiguration ", kKubeflowWebhook);
  return std::string();
}

std::string GetOwnNamespaceSelector(const std::string& name_space) {
  return name_space.empty() ? kLabel : StrCat(kLabel, ",kubernetes.io/metadata.name=", name_space);
}

absl::Status CheckOwnNamespaces(KubeClient& client, const std::string& name_space,
                                const std::string& kubeflow) {
  bool any = false;
  const auto listed = client.List(
      GetTarget(kNamespaces, ""), GetOwnNamespaceSelector(name_space), [&] { any = false; },
      [&](const Json&) { any = true; });
  MUSTER_RETURN_IF_ERROR(listed.status());
  if (any) return absl::OkStatus();
  const bool all = name_space.empty();
  return absl::FailedPreconditionError(
      StrCat("Kubeflow's training operator is in this cluster (", kubeflow,
             "), and two controllers must not act on the same jobs. ",
             all ? "No namespace is" : StrCat("The namespace ", name_space, " is not"),
             " labelled as Muster's: kubectl label namespace ", all ? "NAMESPACE" : name_space, " ",
             kLabel, " && kubectl apply -f deploy/kubernetes/beside-kubeflow.yaml"));
}

bool OwnNamespaces::Has(const std::string& name_space) const {
  const MutexLock lock(&mutex_);
  return names_.contains(name_space);
}

void OwnNamespaces::Set(Json object) {
  const std::string name = GetName(object);
  listed_.insert(name);
  {
    const MutexLock lock(&mutex_);
    if (!names_.insert(name).second) return;
  }
  added_(name);
}

void OwnNamespaces::Remove(const Json& object) {
  const MutexLock lock(&mutex_);
  names_.erase(GetName(object));
}

void OwnNamespaces::EndList(int64_t) {
  const MutexLock lock(&mutex_);
  std::erase_if(names_, [this](const std::string& name) { return !listed_.contains(name); });
}

}  // namespace muster::launch::kubernetes
