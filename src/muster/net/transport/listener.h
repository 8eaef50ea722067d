// Sockets that listen for peers.
#pragma once

#include <memory>
#include <string>

#include "muster/base/status.h"
#include "muster/net/transport/address.h"
#include "muster/net/transport/interrupt.h"
#include "muster/net/transport/stream.h"
#include "muster/process/deadline.h"
#include "muster/process/descriptor.h"

namespace muster::net::transport {

// An accepted connection whose peer is not yet identified.
struct Accepted {
  process::Descriptor socket;
  std::string peer;  // for messages
};

// A listening socket. Accept and Open may be called from any thread.
class Listener {
 public:
  // TCP: port 0 lets the system choose. A numeric address is that of one interface. A name is never
  // looked up, since its DNS record may appear later than its task: it stands for all addresses of
  // this machine, of IPv4 and IPv6, and `localhost` for 127.0.0.1. A unix socket's file is
  // accessible by its owner alone, replaces one on which nobody listens any more, and is removed
  // with the Listener; on an abstract name other users' connections are closed unread.
  // ALREADY_EXISTS: another listener has the address.
  static absl::StatusOr<std::unique_ptr<Listener>> Listen(const Address& address);
  // Takes an inherited, bound stream socket, listening or not. For a unix socket `kind` selects the
  // protocol; its file is not removed.
  static absl::StatusOr<std::unique_ptr<Listener>> Adopt(process::Descriptor socket,
                                                         Address::Kind kind);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // The address as it was given, so that others find it by its name, with the port that the system
  // chose.
  const Address& address() const { return address_; }
  // The address at which processes on this machine dial it: not a name, which would need a lookup.
  Address near_address() const;

  // Accepts the next connection without waiting for any byte from it.
  absl::StatusOr<Accepted> Accept(process::Deadline deadline, const Interrupt& interrupt) const;
  // Makes the stream of an accepted connection, unprotected: to accept strangers, continue with
  // ProtectAccepted. For shared memory it waits for the peer's rings, and a stranger can delay it
  // until the deadline: do not call it on the accepting thread.
  absl::StatusOr<std::unique_ptr<Stream>> Open(Accepted accepted, process::Deadline deadline,
                                               const Interrupt& interrupt) const;

 private:
  Listener(process::Descriptor socket, Address address, bool owns_file)
      : socket_(std::move(socket)), address_(std::move(address)), owns_file_(owns_file) {}

  const process::Descriptor socket_;
  const Address address_;
  const bool owns_file_;
};

}  // namespace muster::net::transport
