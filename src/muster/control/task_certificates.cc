#include "muster/control/task_certificates.h"

#include <utility>

namespace muster::control {
namespace {

using formats::Json;
using formats::JsonFields;

constexpr char kPath[] = "/v1/certificates";
constexpr double kAskSeconds = 10;
constexpr int kDays = 365;

struct Role {
  const char* name;
  net::CertificateUse use;
};
constexpr Role kRoles[] = {{"server", net::CertificateUse::kServer},
                           {"client", net::CertificateUse::kClient}};

absl::StatusOr<Json> Certify(const net::Credentials& authority, const std::string& name,
                             const Json& body) {
  JsonFields fields(body, "certificates");
  const std::string host = fields.Text("host"), key = fields.Text("public_key");
  if (host.empty()) fields.Fail("\"host\" is missing");
  MUSTER_RETURN_IF_ERROR(fields.status());
  Json answer = Json::object();
  for (const Role& role : kRoles) {
    net::CertificateOptions options = {.name = name, .use = role.use, .days = kDays};
    if (role.use == net::CertificateUse::kServer) options.hosts = {host};
    MUSTER_ASSIGN_OR_RETURN(answer[role.name], net::MakeCertificateFor(key, authority, options));
  }
  return answer;
}

}  // namespace

ServiceRoute MakeCertificateRoute(net::Credentials authority, std::string name) {
  return {.method = "POST",
          .path = kPath,
          .handle = [authority = std::move(authority), name = std::move(name)](const Json& body) {
            return Certify(authority, name, body);
          }};
}

absl::Status FetchCertificates(net::HttpClient& coordinator, const JobFolder& bundle,
                               const std::string& host) {
  MUSTER_ASSIGN_OR_RETURN(const net::KeyPair pair, net::MakeKeyPair());
  MUSTER_ASSIGN_OR_RETURN(
      const net::Json answer,
      coordinator.Post(kPath, {{"host", host}, {"public_key", pair.public_key}}, kAskSeconds));
  const Json json = answer;
  JsonFields fields(json, "certificates");
  for (const Role& role : kRoles) {
    const std::string certificate = fields.Text(role.name);
    MUSTER_RETURN_IF_ERROR(fields.status());
    MUSTER_RETURN_IF_ERROR(net::WriteCredentials(bundle.path, role.name,
                                                 {.certificate = certificate, .key = pair.key}));
  }
  return absl::OkStatus();
}

}  // namespace muster::control
