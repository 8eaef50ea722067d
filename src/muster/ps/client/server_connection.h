// ServerConnection: a client's connection to one server, on which each request is followed by its
// answer. It uses a socket in a job, and none in the simulation (simulation_test.cc).
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
#include "muster/ps/wire/message.h"

namespace muster::ps {

// Unusable after an error. It is also an error if the server sends neither an answer nor a
// keep-alive (kAlive) for its lease. One owner thread.
class ServerConnection {
 public:
  virtual ~ServerConnection() = default;
  virtual absl::Status Send(uint16_t type, ConstBytes message) = 0;
  virtual absl::StatusOr<net::transport::Message> Receive() = 0;
};

// Connects to a server, for the first time or again; waits until the server can be reached. Errors
// are final: another attempt would fail too.
using ServerDialer =
    std::function<absl::StatusOr<std::unique_ptr<ServerConnection>>(size_t server)>;

struct ServerConnectionSpec {
  net::transport::Identity self = {};
  net::Token key;
  std::vector<net::transport::Address> servers = {};
  net::transport::Protection protection = {};
  double rendezvous_seconds = 300;          // after that UNAVAILABLE names the absent server
  int stall_seconds = 0;                    // SocketOptions::stall_seconds
  const std::atomic<bool>* stop = nullptr;  // true ends the wait for a server: CANCELLED
  // For people: which server is waited for. May be empty.
  std::function<void(const std::string& text)> note = {};
  // Asked after each vain attempt to reach a server: true ends the wait with CANCELLED, since
  // training is over. May be empty.
  std::function<bool()> has_ended = {};
  // When set, it ends every wait of all connections. May be null.
  std::shared_ptr<net::transport::Interrupt> interrupt = {};
};
absl::StatusOr<ServerDialer> MakeServerDialer(ServerConnectionSpec spec);

}  // namespace muster::ps
