// Turns socket errors into statuses about the peer.
#pragma once

#include <string>

#include "muster/base/status.h"

namespace muster::net::transport {

// UNAVAILABLE: "PEER is gone: receive: Connection reset by peer". `error_number` is errno's.
absl::Status PeerGone(int error_number, const std::string& peer, const char* call);
// UNAVAILABLE: the peer closed the connection, or its process ended.
absl::Status PeerClosed(const std::string& peer);

// Whether the other end of a unix socket is a process of this user, according to the system.
bool PeerIsOurs(int socket);

// Non-blocking and close-on-exec.
absl::Status MakeNonBlocking(int socket, const std::string& peer);

}  // namespace muster::net::transport
