// Takes peers in: accepts, shakes hands with several at once, and hands over who proved itself.
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
#include "muster/net/transport/stream.h"
#include "muster/net/transport/tls.h"

namespace muster::net::transport {

struct AcceptorOptions {
  Token key;
  std::function<Identity()> self = {};  // wanted; asked for each peer: the epoch grows
  Admit admit = {};                     // empty: everybody with the key
  Protection protection = {};
  // Wanted: a peer with its stream, which is the callee's from then on.
  std::function<void(Peer peer, std::unique_ptr<Stream> stream)> on_peer = {};
  // Why somebody was not let in: for logs. May be empty.
  std::function<void(const absl::Status& why)> on_refused = {};
  double handshake_seconds = 10;
  // Of connections that have not proven themselves. One more throws the oldest out, so that
  // silent strangers do not keep a peer from coming in.
  int max_pending = 64;
};

// The callbacks run on threads of the Acceptor, several at once, and must return soon.
class Acceptor {
 public:
  static absl::StatusOr<std::unique_ptr<Acceptor>> Start(std::unique_ptr<Listener> listener,
                                                         AcceptorOptions options);
  // Listens there.
  static absl::StatusOr<std::unique_ptr<Acceptor>> StartAt(const Address& address,
                                                           AcceptorOptions options);
  // For peers of this machine (local_address.h), who do without where that cannot be: null, and
  // `note`, which may be empty, is told why.
  static std::unique_ptr<Acceptor> StartLocally(
      const Address& address, AcceptorOptions options,
      const std::function<void(const std::string& text)>& note);
  // Nobody comes in any more; handshakes under way end; all threads are joined.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  const Address& address() const { return listener_->address(); }

 private:
  struct Pending;

  Acceptor(std::unique_ptr<Listener> listener, AcceptorOptions options,
           std::unique_ptr<Interrupt> stop);
  void Run();
  absl::Status Begin(Accepted accepted);
  void Greet(Accepted accepted, const Interrupt& interrupt);
  // Joins those that are done; throws the oldest out while there are too many.
  void MakePlace();

  const std::unique_ptr<Listener> listener_;
  const AcceptorOptions options_;
  const std::unique_ptr<Interrupt> stop_;
  std::list<std::unique_ptr<Pending>> pending_;  // oldest first; of the accepting thread
  std::jthread thread_;
};

}  // namespace muster::net::transport
