// Where peers come in.
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

// A connection of whom nothing is known yet.
struct Accepted {
  process::Descriptor socket;
  std::string peer;  // for messages
};

// A listening socket. Accept and Open from any thread.
class Listener {
 public:
  // TCP wants the address of an interface in numbers; port 0 lets the system choose. A unix
  // socket's file is for its owner alone, replaces one on which nobody listens any more, and goes
  // with the Listener; on an abstract name other users' connections are closed unread.
  // ALREADY_EXISTS: somebody listens there.
  static absl::StatusOr<std::unique_ptr<Listener>> Listen(const Address& address);
  // A bound stream socket that was inherited, listening or not. For a unix socket `kind` says what
  // is spoken on it; its file stays.
  static absl::StatusOr<std::unique_ptr<Listener>> Adopt(process::Descriptor socket,
                                                         Address::Kind kind);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // With the port that the system chose.
  const Address& address() const { return address_; }

  // The next connection, as it comes: waits for no byte of it.
  absl::StatusOr<Accepted> Accept(process::Deadline deadline, const Interrupt& interrupt) const;
  // Its stream, as it is: who takes strangers in goes on with ProtectAccepted. For shared memory
  // waits for the peer's rings, so that a stranger can take as long as the deadline allows: not on
  // the thread that accepts.
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
