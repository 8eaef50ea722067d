#include "muster/launch/kubernetes/api/exec_credential.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/time/time.h"

#include "muster/base/clock.h"
#include "muster/base/strings.h"
#include "muster/formats/json_fields.h"
#include "muster/process/capture.h"

namespace muster::launch::kubernetes {
namespace {

using formats::Json;
using formats::JsonFields;

constexpr double kRunSeconds = 60;
constexpr double kEarlySeconds = 60;    // before it expires
constexpr double kUnsaidSeconds = 600;  // for how long one is used that does not say
constexpr size_t kMaxOutputBytes = size_t{1} << 20;

std::string MakeInfo(const ExecSpec& spec) {
  Json info = {{"apiVersion", spec.api_version},
               {"kind", "ExecCredential"},
               {"spec", {{"interactive", false}}}};
  if (spec.tells_cluster) {
    Json cluster = {{"server", spec.server}};
    if (!spec.authority.empty()) {
      cluster["certificate-authority-data"] = absl::Base64Escape(spec.authority);
    }
    info["spec"]["cluster"] = std::move(cluster);
  }
  return formats::PrintJson(info);
}

}  // namespace

absl::StatusOr<Credential> ParseExecCredential(const std::string& output, const ExecSpec& spec) {
  MUSTER_ASSIGN_OR_RETURN(const Json json, formats::ParseJsonObject(output, spec.command));
  JsonFields fields(json, spec.command);
  if (fields.Text("apiVersion") != spec.api_version || fields.Text("kind") != "ExecCredential") {
    fields.Fail(StrCat("printed no ExecCredential of ", spec.api_version));
  }
  JsonFields status(fields.Object("status"), spec.command);
  Credential credential = {.token = status.Text("token"),
                           .certificate = status.Text("clientCertificateData"),
                           .key = status.Text("clientKeyData")};
  const std::string expires = status.Text("expirationTimestamp");
  fields.Update(status.status());
  absl::Time time;
  std::string error;
  if (!expires.empty()) {
    if (absl::ParseTime(absl::RFC3339_full, expires, &time, &error)) {
      credential.expires = absl::ToDoubleSeconds(time - absl::UnixEpoch());
    } else {
      fields.Fail(StrCat("expirationTimestamp '", expires, "' is no time"));
    }
  }
  if (credential.token.empty() && credential.certificate.empty()) {
    fields.Fail("printed neither a token nor a certificate");
  }
  if (credential.certificate.empty() != credential.key.empty()) {
    fields.Fail("printed a certificate or its key, but not both");
  }
  MUSTER_RETURN_IF_ERROR(fields.status());
  return credential;
}

absl::StatusOr<Credential> ExecCredential::Run() const {
  process::ChildSpec child = {.argv = {spec_.command},
                              .environment = process::CurrentEnvironment()};
  child.argv.insert(child.argv.end(), spec_.arguments.begin(), spec_.arguments.end());
  for (const auto& [name, value] : spec_.environment) {
    process::SetEnvironment(name, value, &child.environment);
  }
  process::SetEnvironment("KUBERNETES_EXEC_INFO", MakeInfo(spec_), &child.environment);
  const auto run = process::RunCaptured(nullptr, std::move(child), kRunSeconds, kMaxOutputBytes,
                                        process::Captured::kStdout);
  if (!run.ok()) {
    return absl::FailedPreconditionError(
        StrCat(ToStd(run.status().message()), ": the kubeconfig's exec names it",
               spec_.install_hint.empty() ? "" : "; ", spec_.install_hint));
  }
  if (run->timed_out) {
    return absl::DeadlineExceededError(
        StrCat(spec_.command, ": has printed no credential for ", kRunSeconds,
               " s: run kubectl get nodes, which may ask you something"));
  }
  if (!run->exit.ok()) {
    return absl::UnauthenticatedError(
        StrCat(spec_.command, ": ", process::DescribeExit(run->exit),
               " instead of a credential; it has said why above, and kubectl get nodes asks it, "
               "too"));
  }
  return ParseExecCredential(run->output, spec_);
}

absl::StatusOr<Credential> ExecCredential::Get() {
  const MutexLock lock(&mutex_);
  const double now = SystemClock().WallSeconds();
  if (now < good_until_) return credential_;
  MUSTER_ASSIGN_OR_RETURN(credential_, Run());
  good_until_ =
      credential_.expires > 0 ? credential_.expires - kEarlySeconds : now + kUnsaidSeconds;
  return credential_;
}

}  // namespace muster::launch::kubernetes
