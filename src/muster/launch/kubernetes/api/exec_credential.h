// ExecCredential: the program of a kubeconfig's `exec` that prints a credential, such as
// gke-gcloud-auth-plugin, `aws eks get-token` and kubelogin.
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "muster/base/mutex.h"
#include "muster/base/status.h"

namespace muster::launch::kubernetes {

struct ExecSpec {
  std::string command = {};  // absolute, or looked up in PATH
  std::vector<std::string> arguments = {};
  std::vector<std::pair<std::string, std::string>> environment = {};  // besides this process's
  std::string api_version = {};   // client.authentication.k8s.io/v1 or v1beta1
  std::string install_hint = {};  // the kubeconfig's words for a machine without the program
  // With provideClusterInfo, what the program is told about the cluster; else "".
  std::string server = {};
  std::string authority = {};  // PEM
  bool tells_cluster = false;
};

struct Credential {
  std::string token = {};                  // "": none
  std::string certificate = {}, key = {};  // PEM; "": none
  double expires = 0;                      // seconds since the Unix epoch; 0: not said
};

// Reads what the program has printed. INVALID_ARGUMENT if it is no ExecCredential of this version
// with a credential.
absl::StatusOr<Credential> ParseExecCredential(const std::string& output, const ExecSpec& spec);

// Thread-safe.
class ExecCredential {
 public:
  explicit ExecCredential(ExecSpec spec) : spec_(std::move(spec)) {}

  // Returns the credential, for which the program runs at the first call, a minute before the
  // credential expires, and every 10 minutes if it does not say when that is. The program has no
  // terminal; what it writes to stderr goes to this process's. Errors name the program:
  // FAILED_PRECONDITION if it is not there, UNAUTHENTICATED if it fails, DEADLINE_EXCEEDED after 60
  // seconds.
  absl::StatusOr<Credential> Get();

 private:
  absl::StatusOr<Credential> Run() const;

  const ExecSpec spec_;
  Mutex mutex_;
  Credential credential_ ABSL_GUARDED_BY(mutex_);
  double good_until_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::launch::kubernetes
