// Where a task is reached by tasks of its own machine, besides its address for all.
#pragma once

#include <string_view>

#include "muster/net/token.h"
#include "muster/net/transport/address.h"

namespace muster::net::transport {

// Shared memory at an abstract socket. `task` names one start of one task among all that have the
// key (its address, task and incarnation); both sides make the same name of it, a stranger without
// the key cannot. Nobody listens at it on this machine: the task is on another, or has none. Who
// listens there still has to prove itself (handshake.h).
Address LocalAddress(const Token& key, std::string_view task);

}  // namespace muster::net::transport
