// What a task shows and believes where its connections go by TLS, and how they are protected.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/base/status.h"
#include "muster/net/certs.h"

// OpenSSL's SSL_CTX and X509.
struct ssl_ctx_st;
struct x509_st;

namespace muster::net::transport {

// A task both accepts and dials: it has a certificate for each, both of the job's authority, and
// believes that one alone. Immutable: from any thread.
class Tls {
 public:
  // RFC 8446, 5.5: a key of AES-GCM is good for 2^24.5 full records.
  static constexpr uint64_t kRecordsPerKey = uint64_t{1} << 23;

  // INVALID_ARGUMENT names what does not fit; nothing of a key is in a message.
  // `records_per_key`: after so many a sender takes a new key, that of a test earlier.
  static absl::StatusOr<std::shared_ptr<const Tls>> Create(
      const std::string& authority, const Credentials& server, const Credentials& client,
      uint64_t records_per_key = kRecordsPerKey);
  // From a folder of `muster certs`: ca.pem, and server and client with their keys. Errors say what
  // is missing, or may be read by others, and how it is made.
  // `host`: where this task is dialed; others will believe it there, today. "": nobody dials it.
  static absl::StatusOr<std::shared_ptr<const Tls>> Read(const std::string& folder,
                                                         const std::string& host);

  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  ssl_ctx_st* server() const;
  ssl_ctx_st* client() const;
  // "authority 'muster' 3f2a90c1": its name and the beginning of its key's name, since two may have
  // one name.
  const std::string& authority() const { return authority_; }
  uint64_t records_per_key() const { return records_per_key_; }

 private:
  struct Contexts;
  Tls(std::unique_ptr<const Contexts> contexts, std::string authority, uint64_t records_per_key);

  const std::unique_ptr<const Contexts> contexts_;
  const std::string authority_;
  const uint64_t records_per_key_;
};

// Of what signed the certificate, in the same form.
std::string IssuerName(x509_st* certificate);

// Of TCP connections to other machines. Without either there are none. Those within a machine (a
// unix socket, shared memory, OnOneMachine of socket_address.h) need nothing; whoever dials one by
// TLS gets it.
struct Protection {
  std::shared_ptr<const Tls> tls = {};  // wanted of both sides
  bool plain_text = false;              // without TLS: somebody has asked for it in words
  bool within_machine = false;          // the same rules for TCP within a machine
};

// How a task is told, for messages.
inline constexpr char kCertsVariable[] = "MUSTER_CERTS";
inline constexpr char kPlainTextVariable[] = "MUSTER_PLAIN_TEXT";

}  // namespace muster::net::transport
