#include "muster/net/transport/listener.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"

#include "muster/net/listen.h"
#include "muster/net/transport/shared_memory_stream.h"
#include "muster/net/transport/socket_address.h"
#include "muster/net/transport/socket_error.h"
#include "muster/net/transport/socket_stream.h"
#include "muster/net/transport/wait.h"

namespace muster::net::transport {
namespace {

using process::Deadline;
using process::Descriptor;

constexpr int kBacklog = 1024;
constexpr mode_t kOwnerOnly = 0600;

constexpr char kLoopback[] = "127.0.0.1";

bool IsLocalhost(const Address& address) {
  return absl::EqualsIgnoreCase(ToAbsl(address.host), "localhost");
}

// Whether a process listens on the socket's file.
bool SomebodyListens(const SocketAddress& address) {
  const Descriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return connect(probe.get(), address.get(), address.size) == 0 || errno == EAGAIN;
}

absl::StatusOr<Descriptor> ListenAbstract(const Address& address) {
  const std::string where = StrCat("listen on ", ToString(address));
  const SocketAddress bound = UnixAddress(address.path);
  Descriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoStatus(errno, where);
  if (bind(fd.get(), bound.get(), bound.size) != 0 || listen(fd.get(), kBacklog) != 0) {
    if (errno != EADDRINUSE) return ErrnoStatus(errno, where);
    return absl::AlreadyExistsError(StrCat(where, ": somebody listens there; choose another name"));
  }
  return fd;
}

absl::StatusOr<Descriptor> ListenUnix(const Address& address) {
  if (address.is_abstract()) return ListenAbstract(address);
  const std::string where = StrCat("listen on ", ToString(address));
  const SocketAddress bound = UnixAddress(address.path);
  Descriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoStatus(errno, where);
  int failed = bind(fd.get(), bound.get(), bound.size);
  if (failed != 0 && errno == EADDRINUSE) {
    struct stat found = {};
    const bool is_socket = lstat(address.path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode);
    if (!is_socket || SomebodyListens(bound)) {
      return absl::AlreadyExistsError(
          StrCat(where, is_socket ? ": somebody listens there; choose another path"
                                  : ": there is a file that is no socket; choose another path"));
    }
    unlink(address.path.c_str());
    failed = bind(fd.get(), bound.get(), bound.size);
  }
  // This is done before listen(): until then nobody can connect.
  if (failed != 0 || chmod(address.path.c_str(), kOwnerOnly) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    return ErrnoStatus(errno, where);
  }
  return fd;
}

// Returns the numeric address, or those for which a name stands.
absl::StatusOr<internal::Listener> ListenTcp(const Address& address) {
  if (internal::ParseAddress(address.host).ok()) {
    return internal::ListenOn(address.host, address.port);
  }
  auto listening = IsLocalhost(address) ? internal::ListenOn(kLoopback, address.port)
                                        : internal::ListenOnAll(address.port);
  if (listening.ok()) return listening;
  return Annotate(listening.status(), StrCat("listening for ", ToString(address)));
}

std::string UnixPeer(int fd, const Address& address) {
  ucred who = {};
  socklen_t size = sizeof who;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return ToString(address);
  return StrCat(ToString(address), " process ", who.pid);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Listen(const Address& address) {
  if (address.kind != Address::Kind::kTcp) {
    MUSTER_ASSIGN_OR_RETURN(Descriptor fd, ListenUnix(address));
    return std::unique_ptr<Listener>(new Listener(std::move(fd), address, !address.is_abstract()));
  }
  MUSTER_ASSIGN_OR_RETURN(const internal::Listener listening, ListenTcp(address));
  return std::unique_ptr<Listener>(new Listener(Descriptor(listening.descriptor),
                                                Address::Tcp(address.host, listening.port), false));
}

absl::StatusOr<std::unique_ptr<Listener>> Listener::Adopt(Descriptor socket, Address::Kind kind) {
  const std::string what = StrCat("listen on inherited descriptor ", socket.get());
  SocketAddress bound;
  bound.size = sizeof bound.storage;
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockname(socket.get(), bound.get(), &bound.size) != 0 ||
      getsockopt(socket.get(), SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    return ErrnoStatus(errno, what);
  }
  absl::StatusOr<Address> address = FromSocketAddress(bound, kind);
  if (!address.ok()) return Annotate(address.status(), what);
  if (type != SOCK_STREAM) return absl::InvalidArgumentError(StrCat(what, ": no stream socket"));
  MUSTER_RETURN_IF_ERROR(MakeNonBlocking(socket.get(), ToString(*address)));
  if (listen(socket.get(), kBacklog) != 0) return ErrnoStatus(errno, what);
  return std::unique_ptr<Listener>(new Listener(std::move(socket), *std::move(address), false));
}

Address Listener::near_address() const {
  const bool is_name =
      address_.kind == Address::Kind::kTcp && !internal::ParseAddress(address_.host).ok();
  return is_name ? Address::Tcp(kLoopback, address_.port) : address_;
}

Listener::~Listener() {
  if (owns_file_) unlink(address_.path.c_str());
}

absl::StatusOr<Accepted> Listener::Accept(Deadline deadline, const Interrupt& interrupt) const {
  const std::string what = StrCat("wait for a peer on ", ToString(address_));
  while (true) {
    std::string peer;
    int error = 0;
    Descriptor fd;
    if (address_.kind == Address::Kind::kTcp) {
      fd.Reset(internal::AcceptOne(socket_.get(), &peer, &error));
      peer = "tcp://" + peer;
    } else {
      fd.Reset(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      error = errno;
      if (fd.valid()) peer = UnixPeer(fd.get(), address_);
    }
    // The mode of a file keeps other users out; an abstract name has no mode.
    if (fd.valid() && address_.is_abstract() && !PeerIsOurs(fd.get())) continue;
    if (fd.valid()) return Accepted{.socket = std::move(fd), .peer = std::move(peer)};
    if (error == EINTR || error == ECONNABORTED) continue;
    if (error != EAGAIN) return ErrnoStatus(error, what);
    const absl::Status woken = WaitForDescriptor(socket_.get(), POLLIN, deadline, interrupt);
    if (!woken.ok()) return interrupt.is_set() ? woken : Annotate(woken, what);
  }
}

absl::StatusOr<std::unique_ptr<Stream>> Listener::Open(Accepted accepted, Deadline deadline,
                                                       const Interrupt& interrupt) const {
  if (address_.kind == Address::Kind::kSharedMemory) {
    return SharedMemoryStream::Accept(std::move(accepted.socket), std::move(accepted.peer),
                                      deadline, interrupt);
  }
  const bool near = OnOneMachine(accepted.socket.get());
  MUSTER_ASSIGN_OR_RETURN(
      auto stream, SocketStream::Create(std::move(accepted.socket), std::move(accepted.peer)));
  stream->set_wants_checksums(!near);
  return stream;
}

}  // namespace muster::net::transport
