// Connects to a Listener.
#pragma once

#include <memory>

#include "muster/base/status.h"
#include "muster/net/transport/address.h"
#include "muster/net/transport/interrupt.h"
#include "muster/net/transport/shared_memory_stream.h"
#include "muster/net/transport/socket_stream.h"
#include "muster/net/transport/stream.h"
#include "muster/net/transport/tls.h"
#include "muster/process/deadline.h"

namespace muster::net::transport {

struct DialOptions {
  Protection protection = {};
  SocketOptions socket = {};
  SharedMemoryOptions shared_memory = {};
  // False: one attempt; NOT_FOUND at once when nobody listens there now.
  bool wait_for_listener = true;
};

// Tries until somebody listens: tasks start in any order. DEADLINE_EXCEEDED names the address and
// the last attempt's error. What no later attempt can mend, such as PERMISSION_DENIED, ends at
// once. PERMISSION_DENIED also where another user listens on an abstract name. Of TCP to another
// machine FAILED_PRECONDITION without protection and the errors of TlsStream, at once.
absl::StatusOr<std::unique_ptr<Stream>> Dial(const Address& address, const DialOptions& options,
                                             process::Deadline deadline,
                                             const Interrupt& interrupt);

}  // namespace muster::net::transport
