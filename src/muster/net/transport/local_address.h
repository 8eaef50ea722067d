// The address at which tasks on the same machine reach a task, besides its general address.
#pragma once

#include <string_view>

#include "muster/net/token.h"
#include "muster/net/transport/address.h"

namespace muster::net::transport {

// Shared memory at an abstract socket. `task` names one start of one task among all that have the
// key (its address, task and incarnation); both sides derive the same name from it, which is
// impossible without the key. If nobody listens at it on this machine, the task is on another
// machine or has no such address. Its listener must still authenticate itself (handshake.h).
Address LocalAddress(const Token& key, std::string_view task);

}  // namespace muster::net::transport
