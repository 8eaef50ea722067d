// A cluster as a person names it: by a kubeconfig, one of its contexts, and a namespace.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "muster/launch/kubernetes/api/kube_client.h"

namespace muster::launch::kubernetes {

struct ClusterFlags {
  std::string kubeconfig = {};  // "": KUBECONFIG, this pod's service account, ~/.kube/config
  std::string context = {};     // "": the file's current-context
  std::string name_space = {};  // "": the context's, else "default"
};

// One owner thread for the verbs; `client` may be used by any.
struct Cluster {
  std::shared_ptr<KubeClient> client = {};
  std::string name_space = {};

  const KubeAccess& access() const { return client->access(); }
};

// Makes no connection. FAILED_PRECONDITION if there is no kubeconfig; the message says what to do.
absl::StatusOr<Cluster> OpenCluster(const ClusterFlags& flags);
// As OpenCluster, with other patience than a person's.
absl::StatusOr<Cluster> OpenCluster(const KubeAccess& access, const std::string& name_space,
                                    const KubeClientOptions& options);

// `status` of a call about objects of the cluster's namespace, with what a person can do about it:
// a right that is missing, a kind that is not installed, a namespace that does not exist, a server
// that does not answer. Asks the server where that helps. Other errors are returned as they are.
absl::Status AddAdvice(const absl::Status& status, Cluster& cluster);

}  // namespace muster::launch::kubernetes
