// Accepts peers: performs handshakes with several at once and hands over the authenticated ones.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/net/token.h"
#include "muster/net/transport/handshake.h"
#include "muster/net/transport/interrupt.h"
#include "muster/net/transport/listener.h"
#include "muster/net/transport/refusal_log.h"
#include "muster/net/transport/stream.h"
#include "muster/net/transport/tls.h"

namespace muster::net::transport {

struct AcceptorOptions {
  Token key;
  std::function<Identity()> self = {};  // required; called for each peer: the generation grows
  Admit admit = {};                     // empty: admits every peer with the key
  Protection protection = {};
  // Required: receives a peer with its stream, which the callee then owns.
  std::function<void(Peer peer, std::unique_ptr<Stream> stream)> on_peer = {};
  // Why a peer was refused: for logs; most of many similar refusals are left out (refusal_log.h).
  // May be empty.
  std::function<void(const absl::Status& why)> on_refused = {};
  double handshake_seconds = 10;
  int stall_seconds = 0;  // SocketOptions::stall_seconds
  // The most connections that have not authenticated yet. One more drops the oldest, so that silent
  // strangers do not block a peer.
  int max_pending = 64;
};

// The callbacks run on threads of the Acceptor, several at once, and must return soon.
class Acceptor {
 public:
  static absl::StatusOr<std::unique_ptr<Acceptor>> Start(std::unique_ptr<Listener> listener,
                                                         AcceptorOptions options);
  // Listens at `address`.
  static absl::StatusOr<std::unique_ptr<Acceptor>> StartAt(const Address& address,
                                                           AcceptorOptions options);
  // Starts an acceptor for peers on this machine (local_address.h), which can also do without it.
  // If it cannot be started, returns null and passes the reason to `note`, which may be empty.
  static std::unique_ptr<Acceptor> StartLocally(
      const Address& address, AcceptorOptions options,
      const std::function<void(const std::string& text)>& note);
  // Accepts no more peers, ends the handshakes in progress and joins all threads.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  const Address& address() const { return listener_->address(); }
  Address near_address() const { return listener_->near_address(); }

 private:
  struct Pending;

  Acceptor(std::unique_ptr<Listener> listener, AcceptorOptions options,
           std::unique_ptr<Interrupt> stop);
  void Run();
  absl::Status Begin(Accepted accepted);
  void Greet(Accepted accepted, const Interrupt& interrupt);
  void Refused(const std::string& peer, const absl::Status& why);
  // Joins the threads of finished handshakes; drops the oldest handshake while there are too many.
  void MakePlace();

  const std::unique_ptr<Listener> listener_;
  const AcceptorOptions options_;
  const std::unique_ptr<Interrupt> stop_;
  RefusalLog refusals_;
  std::list<std::unique_ptr<Pending>> pending_;  // oldest first; used by the accepting thread
  std::jthread thread_;
};

}  // namespace muster::net::transport
