// The certificates that a task presents and trusts in TLS, and how its connections are protected.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/base/status.h"
#include "muster/net/tls/certs.h"
#include "muster/net/transport/tls_sessions.h"

// OpenSSL's SSL_CTX and X509.
struct ssl_ctx_st;
struct x509_st;

namespace muster::net::transport {

struct TlsOptions {
  // RFC 8446, 5.5: a key of AES-GCM is good for 2^24.5 full records. After this many a sender
  // changes to a new key; tests use fewer.
  uint64_t records_per_key = uint64_t{1} << 23;
  // The kernel encrypts what is sent (kernel_tls.h) over connections for which it can.
  bool by_kernel = false;
};

// A task both accepts and dials: it has a certificate for each role, both from the job's authority,
// and trusts only that authority. Thread-safe: all but the sessions is immutable.
class Tls {
 public:
  // INVALID_ARGUMENT names what does not fit; no message contains any part of a key.
  static absl::StatusOr<std::shared_ptr<const Tls>> Create(const std::string& authority,
                                                           const Credentials& server,
                                                           const Credentials& client,
                                                           const TlsOptions& options = {});
  // Reads a folder of `muster certs`: ca.pem, and server and client with their keys. Errors say
  // what is missing or readable by others, and how to make it. `host`: where this task is dialed;
  // checks that others would trust it there now. "": nobody dials it. The client's certificate is
  // checked, too. FAILED_PRECONDITION if the kernel is to encrypt and cannot change keys.
  static absl::StatusOr<std::shared_ptr<const Tls>> Read(const std::string& folder,
                                                         const std::string& host, bool by_kernel);

  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  ssl_ctx_st* server() const;
  ssl_ctx_st* client() const;
  // "authority 'muster' 3f2a90c1": its name and the beginning of its key's identifier, since two
  // authorities may have the same name.
  const std::string& authority() const { return authority_; }
  const TlsOptions& options() const { return options_; }
  TlsSessions& sessions() const { return *sessions_; }

 private:
  struct Contexts;
  Tls(std::unique_ptr<const Contexts> contexts, std::string authority, const TlsOptions& options);

  const std::unique_ptr<const Contexts> contexts_;
  const std::string authority_;
  const TlsOptions options_;
  const std::unique_ptr<TlsSessions> sessions_;
};

// The issuer of the certificate, in the form of Tls::authority().
std::string IssuerName(x509_st* certificate);

// The protection of TCP connections to other machines: without TLS or `plain_text` no such
// connection is made. Connections within a machine (a unix socket, shared memory, OnOneMachine of
// socket_address.h) need no protection; one that is dialed with TLS gets it.
struct Protection {
  std::shared_ptr<const Tls> tls = {};  // required from both sides
  bool plain_text = false;              // without TLS: explicitly requested
  bool within_machine = false;          // the same rules for TCP within a machine
};

// The environment variables with which a task is given its protection, for messages.
inline constexpr char kCertsVariable[] = "MUSTER_CERTS";
inline constexpr char kPlainTextVariable[] = "MUSTER_PLAIN_TEXT";
inline constexpr char kKernelTlsVariable[] = "MUSTER_KERNEL_TLS";

}  // namespace muster::net::transport
