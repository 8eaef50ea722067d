// Whether the network between the two ends of a TCP connection still carries anything.
//
// A machine that vanishes, or a cable that is cut, closes no connection. TCP keep-alives detect
// that: one is sent every second on an idle connection, and the other end's kernel answers it
// whatever its process does, so that a process that computes, reads, saves or waits is never taken
// for lost (nor is a stopped process: leases detect that). A link over which nothing arrived for
// its timeout, though something was due, is broken. TCP_USER_TIMEOUT would also break a link whose
// other end does not read for that long.
#pragma once

#include "muster/base/status.h"

namespace muster::net::transport {

inline constexpr int kDefaultStallSeconds = 30;
// Bounded by the number of keep-alives that the system counts, one a second.
inline constexpr int kMinStallSeconds = 2, kMaxStallSeconds = 120;

// Sets the timeout of a TCP socket, connected or about to be; does nothing to other sockets. 0: the
// default, unless the socket has a timeout already.
void SetStallTimeout(int socket, int seconds);

// OK for anything but a TCP connection, and while anything arrives. UNAVAILABLE names both ends.
absl::Status CheckLink(int socket);
// Whether an error comes from CheckLink, and not from the peer closing the connection.
bool IsBrokenLink(const absl::Status& status);

}  // namespace muster::net::transport
