// TLS sessions (RFC 8446, 2.2) that a task has from connections to others, so that the next
// connection to the same process needs no new proof by certificates. A process that was started
// again knows no earlier session, and both sides show their certificates.
//
// The side that dials uses a session once, within an hour, and not after the other's certificate
// has expired; nor does the other side accept it then. Each connection brings the session for the
// next one: as long as two processes connect again within an hour, they show no certificates. (An
// authority is expected to live as long as its certificates.) Keys are agreed on anew, so that old
// connections stay secret.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"

#include "muster/base/mutex.h"

// OpenSSL's SSL, SSL_CTX and SSL_SESSION.
struct ssl_st;
struct ssl_ctx_st;
struct ssl_session_st;

namespace muster::net::transport {

// Thread-safe.
class TlsSessions {
 public:
  // Lets the connections that this context accepts give and resume sessions.
  static void Allow(ssl_ctx_st* server);

  // Before the handshake of a connection that was dialed: offers the session of an earlier one to
  // `peer`, if there is one.
  void Offer(const std::string& peer, ssl_st* ssl);
  // After the other side's first bytes: keeps the session that came before them, if one did.
  void Keep(const std::string& peer, ssl_st* ssl);

 private:
  struct Free {
    void operator()(ssl_session_st* session) const;
  };

  Mutex mutex_;
  std::map<std::string, std::unique_ptr<ssl_session_st, Free>> sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::net::transport
