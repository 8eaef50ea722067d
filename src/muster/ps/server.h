// Server: a parameter server at work: ServerState behind connections, a thread each.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "muster/base/status.h"
#include "muster/net/transport/channel.h"
#include "muster/net/transport/handshake.h"
#include "muster/ps/request.h"
#include "muster/ps/server_state.h"

namespace muster::ps {

// What a worker asks for in its handshake (net/transport/handshake.h).
inline constexpr char kService[] = "ps";

// Thread-safe.
class Server {
 public:
  // `variables` and `placement` must outlive it.
  static absl::StatusOr<std::unique_ptr<Server>> Create(ServerSpec spec,
                                                        std::span<const Variable> variables,
                                                        const Placement& placement);
  // Closes all connections.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // A worker that has proven itself. Returns at once.
  void Serve(const net::transport::Peer& peer, std::unique_ptr<net::transport::Stream> stream);

  // Returns whether the chief has said within so long that training is over; then only when all
  // workers have gone, or after so long again.
  bool WaitForEnd(double seconds);
  // Whether no worker is connected.
  bool alone();

 private:
  using Connection = ServerState::Connection;
  Server(ServerSpec spec, std::span<const Variable> variables, const Placement& placement,
         std::unique_ptr<net::transport::Interrupt> stop);
  void Converse(Connection id, int64_t incarnation, net::transport::Channel& channel);
  // Returns when it has an answer.
  absl::Status Handle(const net::transport::Message& message, Request* request);

  const std::unique_ptr<net::transport::Interrupt> stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  ServerState state_;
  Connection last_connection_ = 0;
  std::list<std::jthread> threads_;
};

}  // namespace muster::ps
