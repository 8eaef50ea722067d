// The service that a worker names to a parameter server, and the server's second address.
#pragma once

#include "muster/net/token.h"
#include "muster/net/transport/address.h"

namespace muster::ps {

// The service that a worker names in its handshake (net/transport/handshake.h).
inline constexpr char kService[] = "ps";

// The shared-memory address on which the server of `address` listens for workers of the
// same machine. A connection first tries this address, then `address` itself.
net::transport::Address LocalServerAddress(const net::Token& key,
                                           const net::transport::Address& address);

}  // namespace muster::ps
