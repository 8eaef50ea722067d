// The certificates that the two ends of a TLS connection present and trust: only those of the job's
// own authority.
#pragma once

#include <string>

namespace muster::net {

// PEM texts, not paths. TLS 1.3 only.
struct ServerTls {
  std::string certificate = {};
  std::string key = {};
  // If set, a client must present a certificate of this authority, besides the token.
  std::string client_authority = {};
};

struct ClientTls {
  std::string authority = {};    // the only one that is trusted; the system's are not
  std::string certificate = {};  // presented when the server asks
  std::string key = {};
};

}  // namespace muster::net
