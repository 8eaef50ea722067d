// How an API server of Kubernetes is reached: from inside a pod by its service account, elsewhere
// by a kubeconfig file, of which the parts that Muster has are read and all others are refused by
// name.
#pragma once

#include <optional>
#include <string>

#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/net/http/bearer_token.h"

namespace muster::launch::kubernetes {

struct KubeAccess {
  std::string server = {};                     // "https://10.0.0.1:6443"
  std::string authority = {};                  // PEM; "": this machine's authorities
  std::string certificate = {}, key = {};      // PEM, the client's; "": none
  std::optional<net::BearerToken> token = {};  // read again at each call
  std::string name_space = {};                 // of the context or the pod; "": not said
  std::string source = {};                     // where this was read, for messages
};

// Where to look. The first that is given counts: `kubeconfig`, `environment_kubeconfig`, the
// service account if `service_host` is set, `home`/.kube/config.
struct KubeConfigPlaces {
  std::string kubeconfig = {};                       // a flag's value
  std::string context = {};                          // "": the file's current-context
  std::string environment_kubeconfig = {};           // KUBECONFIG: files, separated by colons
  std::string service_host = {}, service_port = {};  // KUBERNETES_SERVICE_HOST and _PORT
  std::string home = {};
  std::string account_folder = "/var/run/secrets/kubernetes.io/serviceaccount";
};

// Fills what comes from this process's environment.
KubeConfigPlaces GetKubeConfigPlaces();

// Makes no connection, but runs the program of the user's `exec` (exec_credential.h), whose errors
// it returns. FAILED_PRECONDITION if there is no configuration in any place; INVALID_ARGUMENT for a
// file that is no kubeconfig, a context that it does not have, and what is not supported (auth
// providers, passwords, proxies, servers that are not verified); errors of reading the files.
absl::StatusOr<KubeAccess> ReadKubeAccess(const KubeConfigPlaces& places, io::FileSystem& files);

}  // namespace muster::launch::kubernetes
