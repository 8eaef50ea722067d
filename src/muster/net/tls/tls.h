// The certificates that the two ends of a TLS connection present and trust. Between a job's own
// programs those are the job's authority and what it signed; a client of other servers may trust
// their authority or the machine's.
#pragma once

#include <string>

namespace muster::net {

// PEM texts, not paths. TLS 1.3 only, unless a client allows 1.2.
struct ServerTls {
  std::string certificate = {};
  std::string key = {};
  // If set, a client must present a certificate of this authority, besides the token.
  std::string client_authority = {};
};

struct ClientTls {
  std::string authority = {};    // one or more; only these are trusted, not the machine's
  std::string certificate = {};  // presented when the server asks
  std::string key = {};
  // In place of `authority`: trusts the authorities that this machine trusts, as OpenSSL finds them
  // (SSL_CERT_FILE and SSL_CERT_DIR in the environment, else where the distribution has them).
  bool machine_authorities = false;
  bool allow_tls_1_2 = false;  // for servers that do not speak 1.3
};

}  // namespace muster::net
