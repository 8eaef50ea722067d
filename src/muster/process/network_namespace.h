// A private network for a job: sockets that listen in it cannot be reached from outside, not even
// by other users of this machine. Linux' network namespaces (network_namespaces(7),
// user_namespaces(7)).
#pragma once

#include <sys/types.h>

#include "muster/base/status.h"

namespace muster::process {

// Moves this process and all that it starts from now on into a network of its own that has only
// loopback; does nothing if it is in one already (IsNetworkIsolated). Without root's rights it also
// enters a user namespace, in which it is the same user. Call it before the process starts a
// thread. FAILED_PRECONDITION: the kernel does not permit it; the message says what to do.
absl::Status IsolateNetwork();
// Whether this process is in a network made by IsolateNetwork, called by this process or by an
// ancestor.
bool IsNetworkIsolated();

// Moves this process into the network of `process`, which must belong to the same user. Call it
// before this process starts a thread.
absl::Status JoinNetwork(pid_t process);

}  // namespace muster::process
