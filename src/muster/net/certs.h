// A job's own certificate authority and what it signs: what `muster certs` makes.
//
// EC P-256 keys, X.509 v3, SHA-256; RFC 5280's extensions with only what is needed: the authority
// signs and does nothing else, a server's certificate serves, a client's asks. The authority's key
// is wanted again only to sign more; it need not be where the job runs.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"

namespace muster::net {

// PEM texts.
struct Credentials {
  std::string certificate = {};
  std::string key = {};
};

enum class CertificateUse { kServer, kClient };

struct CertificateOptions {
  std::string name = {};  // common name, at most 64 bytes; for people, nothing checks it
  CertificateUse use = CertificateUse::kServer;
  // A server's: names and IP addresses under which clients reach it. Wanted for kServer.
  std::vector<std::string> hosts = {};
  int days = 365;  // 1 to 3650; valid from five minutes ago, for clocks that are late
};

// A self-signed authority. INVALID_ARGUMENT for an empty or long name or bad days.
absl::StatusOr<Credentials> MakeAuthority(const std::string& name, int days);

// INVALID_ARGUMENT names the host that is neither a DNS name nor an address, or says that
// `authority` is no certificate with its key.
absl::StatusOr<Credentials> MakeCertificate(const Credentials& authority,
                                            const CertificateOptions& options);

// The files of one of them in `folder`: <name>.pem and <name>-key.pem, mode 0600, each old or new
// and never half; the key first, so that a certificate that is there has its key.
absl::Status WriteCredentials(const std::string& folder, const std::string& name,
                              const Credentials& credentials);

// Reads both; a key that others may read is refused.
absl::StatusOr<Credentials> ReadCredentials(const std::string& folder, const std::string& name);

// All a job needs, in `folder`, which exists: "ca", "server" for these hosts, "client".
absl::Status MakeJobCertificates(const std::string& folder, const std::string& job,
                                 const std::vector<std::string>& hosts, int days);

// Whether clients that believe `authority` (PEM) alone would believe that a server with this
// certificate is at `host`, now. FAILED_PRECONDITION says why not: another authority, another host,
// no longer valid, no server's; or that one of the two is no PEM certificate.
absl::Status CheckServerCertificate(const std::string& authority, const std::string& certificate,
                                    const std::string& host);

// The same of the key that goes with it: FAILED_PRECONDITION.
absl::Status CheckKey(const Credentials& credentials);

}  // namespace muster::net
