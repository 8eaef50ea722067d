// Connects to a Listener.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "muster/base/status.h"
#include "muster/net/transport/address.h"
#include "muster/net/transport/interrupt.h"
#include "muster/net/transport/shared_memory_stream.h"
#include "muster/net/transport/socket_address.h"
#include "muster/net/transport/socket_stream.h"
#include "muster/net/transport/stream.h"
#include "muster/net/transport/tls.h"
#include "muster/process/deadline.h"

namespace muster::net::transport {

struct DialOptions {
  Protection protection = {};
  SocketOptions socket = {};
  SharedMemoryOptions shared_memory = {};
  // False: there is one attempt, with NOT_FOUND at once if nobody listens there now.
  bool wait_for_listener = true;
  // Resolves a name to addresses, again for each attempt: a replaced task keeps its name and may
  // have another address. Empty: ResolveTcp.
  std::function<absl::StatusOr<std::vector<SocketAddress>>(const Address& name)> resolve = {};
  // The most time for an attempt at one address of a name, since the name may have moved away from
  // an address that does not answer.
  double connect_seconds = 5;
};

// Retries until somebody listens, since tasks start in any order. DEADLINE_EXCEEDED names the
// address and the last attempt's error. Errors that no retry can fix, such as PERMISSION_DENIED,
// are returned at once. PERMISSION_DENIED also if another user listens on an abstract name. For TCP
// to another machine, FAILED_PRECONDITION without protection and the errors of TlsStream are
// returned at once.
absl::StatusOr<std::unique_ptr<Stream>> Dial(const Address& address, const DialOptions& options,
                                             process::Deadline deadline,
                                             const Interrupt& interrupt);

}  // namespace muster::net::transport
