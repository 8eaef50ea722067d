// Line: a client's way to one server: a request, then its answer. Over a socket in a job; without
// one in the simulation (simulation_test.cc).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "muster/base/status.h"
#include "muster/net/token.h"
#include "muster/net/transport/address.h"
#include "muster/net/transport/channel.h"
#include "muster/net/transport/handshake.h"
#include "muster/net/transport/interrupt.h"
#include "muster/net/transport/tls.h"
#include "muster/ps/message.h"

namespace muster::ps {

// After an error it is of no use any more. One owner thread.
class Line {
 public:
  virtual ~Line() = default;
  virtual absl::Status Send(uint16_t type, ConstBytes message) = 0;
  virtual absl::StatusOr<net::transport::Message> Receive() = 0;
};

// To that server, for the first time or anew; waits until it is there. Errors are for good.
using DialLine = std::function<absl::StatusOr<std::unique_ptr<Line>>(size_t server)>;

struct SocketLineSpec {
  net::transport::Identity self = {};
  net::Token key;
  std::vector<net::transport::Address> servers = {};
  net::transport::Protection protection = {};
  double rendezvous_seconds = 300;          // without a server for longer: UNAVAILABLE, who it is
  const std::atomic<bool>* stop = nullptr;  // true: CANCELLED; may be null
  // Set, it ends every wait of all lines; null: nothing does.
  std::shared_ptr<net::transport::Interrupt> interrupt = {};
};
absl::StatusOr<DialLine> SocketLines(SocketLineSpec spec);

// Where a server that has `address` listens for workers of its own machine: shared memory. A line
// goes there when somebody is there.
net::transport::Address LocalServerAddress(const net::Token& key,
                                           const net::transport::Address& address);

}  // namespace muster::ps
