// Listening and accepted sockets, close-on-exec from the start: a child process that another thread
// spawns at the same moment never inherits one.
#pragma once

#include <cstdint>
#include <string>

#include "muster/base/status.h"

namespace muster::net::internal {

struct Listener {
  int descriptor = -1;  // the caller closes it
  uint16_t port = 0;
  bool is_v6 = false;
  bool is_loopback = false;
};

struct NumericAddress {
  bool is_v6 = false;
  bool is_loopback = false;
};

// INVALID_ARGUMENT for text that is not a numeric IPv4 or IPv6 address.
absl::StatusOr<NumericAddress> ParseAddress(const std::string& address);

// Port 0: the system chooses. ALREADY_EXISTS if the port is taken.
absl::StatusOr<Listener> ListenOn(const std::string& address, uint16_t port);

// Listens on every IPv4 and IPv6 address of this machine, or on IPv4 alone if the kernel has no
// IPv6. Errors are those of ListenOn.
absl::StatusOr<Listener> ListenOnAll(uint16_t port);

// "127.0.0.1:80", "[::1]:80"
std::string HostPort(const std::string& address, uint16_t port);

// Accepts a waiting connection; -1 with *error set (EAGAIN: none waits). *peer is "address:port";
// an IPv4 peer of a dual-stack socket is written as IPv4.
int AcceptOne(int listener, std::string* peer, int* error);

}  // namespace muster::net::internal
