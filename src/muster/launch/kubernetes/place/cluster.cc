#include "muster/launch/kubernetes/place/cluster.h"

#include <utility>

#include "absl/strings/match.h"

#include "muster/files/file_systems.h"
#include "muster/job/job_name.h"

namespace muster::launch::kubernetes {
namespace {

// A person waits for the answer.
constexpr KubeClientOptions kPersonsPatience = {.patience = 5, .call_seconds = 10};

constexpr KubeKind kNamespaces = {"v1", "namespaces"};

bool Says(const absl::Status& status, std::string_view text) {
  return absl::StrContains(status.message(), ToAbsl(text));
}

// Whether the server said that it does not know the kind, instead of the object.
bool IsUnknownKind(const absl::Status& status) {
  return Says(status, "could not find the requested resource") || Says(status, "HTTP status 404");
}

absl::Status Extend(const absl::Status& status, std::string_view advice) {
  return absl::Status(status.code(), StrCat(ToStd(status.message()), "; ", advice));
}

absl::Status AdviseOnNotFound(const absl::Status& status, Cluster& cluster) {
  if (IsUnknownKind(status)) {
    return absl::FailedPreconditionError(
        StrCat("the cluster of ", cluster.access().source,
               " does not know the kind TFJob: install Muster's operator with kubectl apply -k "
               "deploy/kubernetes (docs/kubernetes.md)"));
  }
  const auto found = cluster.client->Get(GetTarget(kNamespaces, "", cluster.name_space));
  if (!absl::IsNotFound(found.status())) return status;
  return absl::NotFoundError(StrCat("there is no namespace ", cluster.name_space,
                                    " in the cluster of ", cluster.access().source,
                                    ": give another --namespace, or make it with kubectl create "
                                    "namespace ",
                                    cluster.name_space));
}

}  // namespace

absl::StatusOr<Cluster> OpenCluster(const ClusterFlags& flags) {
  KubeConfigPlaces places = GetKubeConfigPlaces();
  places.kubeconfig = flags.kubeconfig;
  places.context = flags.context;
  auto access = ReadKubeAccess(places, *files::OpenFileSystems());
  if (absl::IsFailedPrecondition(access.status())) {
    return Extend(access.status(),
                  "give --kubeconfig FILE, or copy the cluster's kubeconfig there");
  }
  MUSTER_RETURN_IF_ERROR(access.status());
  return OpenCluster(*access, flags.name_space, kPersonsPatience);
}

absl::StatusOr<Cluster> OpenCluster(const KubeAccess& access, const std::string& name_space,
                                    const KubeClientOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(auto client, KubeClient::New(access, options));
  std::string chosen = name_space.empty() ? access.name_space : name_space;
  if (chosen.empty()) chosen = "default";
  MUSTER_RETURN_IF_ERROR(Annotate(job::CheckNamespace(chosen), access.source));
  return Cluster{.client = std::move(client), .name_space = std::move(chosen)};
}

absl::Status AddAdvice(const absl::Status& status, Cluster& cluster) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return AdviseOnNotFound(status, cluster);
    case absl::StatusCode::kPermissionDenied:
      if (Says(status, "exceeded quota")) {
        return Extend(status,
                      StrCat("ask for less, or have the quota of the namespace raised (kubectl "
                             "describe quota -n ",
                             cluster.name_space, ")"));
      }
      if (!Says(status, "cannot")) return status;  // it is being deleted, or an admission refuses
      return Extend(status, StrCat("an administrator of the cluster can give the right with the "
                                   "ClusterRole muster-user (deploy/kubernetes/user.yaml) in the "
                                   "namespace ",
                                   cluster.name_space));
    case absl::StatusCode::kUnauthenticated:
      return Extend(status, "renew it, or give another --kubeconfig or --context");
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return absl::UnavailableError(StrCat(ToStd(status.message()), "; ", cluster.access().source,
                                           " says that the cluster is there"));
    default:
      return status;
  }
}

}  // namespace muster::launch::kubernetes
