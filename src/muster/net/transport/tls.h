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

// A task both accepts and dials: it has a certificate for each role, both from the job's authority,
// and trusts only that authority. Thread-safe: all but the sessions is immutable.
class Tls {
 public:
  // RFC 8446, 5.5: a key of AES-GCM is good for 2^24.5 full records.
  static constexpr uint64_t kRecordsPerKey = uint64_t{1} << 23;

  // INVALID_ARGUMENT names what does not fit; no message contains any part of a key.
  // `records_per_key`: after this many a sender switches to a new key; tests use fewer.
  static absl::StatusOr<std::shared_ptr<const Tls>> Create(
      const std::string& authority, const Credentials& server, const Credentials& client,
      uint64_t records_per_key = kRecordsPerKey);
  // Reads a folder of `muster certs`: ca.pem, and server and client with their keys. Errors say
  // what is missing or readable by others, and how to make it. `host`: where this task is dialed;
  // checks that others would trust it there now. "": nobody dials it.
  static absl::StatusOr<std::shared_ptr<const Tls>> Read(const std::string& folder,
                                                         const std::string& host);

  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  ssl_ctx_st* server() const;
  ssl_ctx_st* client() const;
  // "authority 'muster' 3f2a90c1": its name and the beginning of its key's identifier, since two
  // authorities may have the same name.
  const std::string& authority() const { return authority_; }
  uint64_t records_per_key() const { return records_per_key_; }
  TlsSessions& sessions() const { return *sessions_; }

 private:
  struct Contexts;
  Tls(std::unique_ptr<const Contexts> contexts, std::string authority, uint64_t records_per_key);

  const std::unique_ptr<const Contexts> contexts_;
  const std::string authority_;
  const uint64_t records_per_key_;
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

}  // namespace muster::net::transport
