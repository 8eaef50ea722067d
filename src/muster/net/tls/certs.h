// A job's own certificate authority and the certificates that it signs, as made by `muster certs`.
//
// EC P-256 keys, X.509 v3, SHA-256; RFC 5280's extensions limited to what is needed: the authority
// only signs, and server and client certificates are each valid for their own role alone. The
// authority's key is needed again only to sign more certificates; it need not be where the job
// runs.
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
  std::string name = {};  // common name, at most 64 bytes; for people; not checked
  CertificateUse use = CertificateUse::kServer;
  // For a server: the names and IP addresses under which clients reach it. Required for kServer.
  std::vector<std::string> hosts = {};
  int days = 365;  // 1 to 3650; valid from five minutes ago, for slow clocks
};

// A self-signed authority. INVALID_ARGUMENT for an empty or long name or an invalid number of days.
absl::StatusOr<Credentials> MakeAuthority(const std::string& name, int days);

// INVALID_ARGUMENT names a host that is neither a DNS name nor an address, or says that `authority`
// is not a certificate with its key.
absl::StatusOr<Credentials> MakeCertificate(const Credentials& authority,
                                            const CertificateOptions& options);

// A new key whose certificate another process makes. PEM texts.
struct KeyPair {
  std::string key = {};
  std::string public_key = {};
};
absl::StatusOr<KeyPair> MakeKeyPair();

// Does what MakeCertificate does for a key that stays with its owner, and returns the certificate.
// INVALID_ARGUMENT also for a public key that is no PEM text of an EC key.
absl::StatusOr<std::string> MakeCertificateFor(const std::string& public_key,
                                               const Credentials& authority,
                                               const CertificateOptions& options);

// Writes <name>.pem and <name>-key.pem into `folder`, mode 0600, each atomically, the key first, so
// that an existing certificate always has its key.
absl::Status WriteCredentials(const std::string& folder, const std::string& name,
                              const Credentials& credentials);

// Reads both files; refuses a key that others may read.
absl::StatusOr<Credentials> ReadCredentials(const std::string& folder, const std::string& name);

// Makes all credentials of a job in `folder`, which must exist: "ca", "server" for these hosts,
// "client".
absl::Status MakeJobCertificates(const std::string& folder, const std::string& job,
                                 const std::vector<std::string>& hosts, int days);

// Checks that clients that trust only `authority` (PEM) would now accept this certificate from a
// server at `host`. FAILED_PRECONDITION says why not: another authority, another host, no longer
// valid, not a server's certificate; or that one of the two is not a PEM certificate.
absl::Status CheckServerCertificate(const std::string& authority, const std::string& certificate,
                                    const std::string& host);

// The same for servers that trust only `authority`, and this client.
absl::Status CheckClientCertificate(const std::string& authority, const std::string& certificate);

// FAILED_PRECONDITION if the key does not belong to the certificate.
absl::Status CheckKey(const Credentials& credentials);

}  // namespace muster::net
