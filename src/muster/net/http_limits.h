// What an HTTP server grants a peer. Everything that a peer can make grow or wait has a bound here.
#pragma once

#include <cstddef>

namespace muster::net {

struct HttpLimits {
  size_t header_bytes = size_t{16} << 10;  // request line and header fields together
  size_t body_bytes = size_t{1} << 20;     // refused from its announced length, before it is read

  // Connections that have not yet shown the token (without a token: not yet sent one request's
  // header). One more closes the oldest of them, so that strangers cannot shut others out by
  // holding connections.
  size_t strangers = 256;
  size_t connections = 4096;  // the others; one more is answered 503 and closed

  // Seconds, each for the whole of its part, however the bytes trickle.
  double header_seconds = 10;  // TLS handshake too; from the connection or the first byte on
  double body_seconds = 30;
  double write_seconds = 30;    // one answer
  double idle_seconds = 75;     // between two requests
  double answer_seconds = 120;  // a handler's, then 504; long polls end before it

  // Wrong tokens are answered 401 up to so many a second, then 429. Right ones always get through.
  int wrong_tokens_per_second = 20;
};

}  // namespace muster::net
