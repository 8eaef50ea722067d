// The limits of an HTTP server for its peers. Everything that a peer can make grow or wait has a
// limit here.
#pragma once

#include <cstddef>

namespace muster::net {

struct HttpLimits {
  size_t header_bytes = size_t{16} << 10;  // request line and header fields together
  size_t body_bytes = size_t{1} << 20;     // refused from its announced length, before it is read

  // Connections that have not yet shown the token (without a token: not yet sent one request's
  // header). One more closes the oldest of them, so that strangers cannot block others by holding
  // connections.
  size_t strangers = 256;
  size_t connections = 4096;  // all others; one more is answered 503 and closed

  // Seconds, each for the whole phase, however slowly the bytes arrive.
  double header_seconds = 10;  // with TLS handshake; from the connection or the first byte on
  double body_seconds = 30;
  double write_seconds = 30;    // one answer
  double idle_seconds = 75;     // between two requests
  double answer_seconds = 120;  // for a handler, then 504; long polls end before

  // Up to this many wrong tokens per second are answered 401, then 429. Correct ones are always
  // accepted.
  int wrong_tokens_per_second = 20;
};

}  // namespace muster::net
