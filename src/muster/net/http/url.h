// The URL of a control plane's server, split into the parts needed to connect and to send requests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "muster/base/status.h"

namespace muster::net::internal {

struct HttpUrl {
  bool is_tls = false;
  std::string host = {};  // a name or an address in numbers, without brackets
  uint16_t port = 0;
  std::string authority = {};  // host and port as written: the Host field
  std::string path = {};       // precedes every target; no slash at its end
  std::string base = {};       // all of it; no slash at its end
  bool is_numeric = false;
  // This machine, without a name lookup: an address of 127/8, ::1, or "localhost".
  bool is_loopback = false;
};

// "http://HOST:PORT/PATH" and the same with https; HOST is a name, an IPv4 address or an IPv6
// address in brackets, the port may be left out. INVALID_ARGUMENT for anything else (user,
// password, query, short forms of addresses); the message does not repeat the text, which may hold
// a password.
absl::StatusOr<HttpUrl> ParseHttpUrl(std::string_view text);

// Whether `target` can be used in a request's first line: no spaces, no control characters.
bool IsSendable(std::string_view target);

}  // namespace muster::net::internal
