// What the two ends of a TLS connection show and believe: a job's own authority and nobody else.
#pragma once

#include <string>

namespace muster::net {

// PEM texts, not paths. TLS 1.3 only.
struct ServerTls {
  std::string certificate = {};
  std::string key = {};
  // When set, a client must show a certificate of this authority, besides the token.
  std::string client_authority = {};
};

struct ClientTls {
  std::string authority = {};    // the only one that is believed; the system's are not
  std::string certificate = {};  // shown when the server asks
  std::string key = {};
};

}  // namespace muster::net
