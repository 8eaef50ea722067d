// Sockets that listen and what they accept, close-on-exec from the start: a child process that is
// spawned at the same moment by another thread never inherits one.
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

// INVALID_ARGUMENT for what is no IPv4 or IPv6 address in numbers.
absl::StatusOr<NumericAddress> ParseAddress(const std::string& address);

// Port 0: the system chooses. ALREADY_EXISTS when the port is taken.
absl::StatusOr<Listener> ListenOn(const std::string& address, uint16_t port);

// "127.0.0.1:80", "[::1]:80"
std::string HostPort(const std::string& address, uint16_t port);

// A waiting connection; -1 with *error set (EAGAIN: none waits). *peer is "address:port".
int AcceptOne(int listener, std::string* peer, int* error);

}  // namespace muster::net::internal
