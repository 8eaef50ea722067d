// How a worker finds a parameter server: what its handshake asks for, and the server's second
// address.
#pragma once

#include "muster/net/token.h"
#include "muster/net/transport/address.h"

namespace muster::ps {

// What a worker asks for in its handshake (net/transport/handshake.h).
inline constexpr char kService[] = "ps";

// The shared-memory address on which the server of `address` listens for workers of its own
// machine. A connection first tries this address, then `address` itself.
net::transport::Address LocalServerAddress(const net::Token& key,
                                           const net::transport::Address& address);

}  // namespace muster::ps
