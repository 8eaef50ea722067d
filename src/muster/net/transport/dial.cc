#include "muster/net/transport/dial.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "muster/net/listen.h"
#include "muster/net/transport/protect.h"
#include "muster/net/transport/socket_error.h"
#include "muster/net/transport/wait.h"

namespace muster::net::transport {
namespace {

using process::Deadline;
using process::Descriptor;

// The time between attempts: nothing announces that a peer has begun to listen.
constexpr double kFirstPause = 0.005, kLongestPause = 0.2;

bool MayPass(int error) {
  switch (error) {
    case ECONNREFUSED:
    case ENOENT:  // the unix socket's file is not there yet
    case EAGAIN:  // its backlog is full
    case ECONNRESET:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case EADDRNOTAVAIL:  // no port is free for us
      return true;
    default:
      return false;
  }
}

// When it looks for a port for this end of a connection to a port on which nobody listens, the
// system may choose that very port: the socket is then connected to itself.
bool ConnectedToItself(int fd) {
  SocketAddress here, there;
  here.size = there.size = sizeof here.storage;
  return getsockname(fd, here.get(), &here.size) == 0 &&
         getpeername(fd, there.get(), &there.size) == 0 && here.family() != AF_UNIX &&
         here.size == there.size && std::memcmp(&here.storage, &there.storage, here.size) == 0;
}

// Returns 0 or the errno of this attempt; a status if the wait has ended.
absl::StatusOr<int> Connect(int fd, const SocketAddress& address, Deadline deadline,
                            const Interrupt& interrupt) {
  if (connect(fd, address.get(), address.size) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return errno;
    MUSTER_RETURN_IF_ERROR(WaitForDescriptor(fd, POLLOUT, deadline, interrupt));
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error != 0) return error;
  }
  return ConnectedToItself(fd) ? ECONNREFUSED : 0;
}

struct Attempt {
  Descriptor socket = {};  // valid: connected
  absl::Status error = {};
  bool may_pass = true;
};

absl::StatusOr<std::vector<SocketAddress>> GetTargets(const Address& address,
                                                      const DialOptions& options) {
  if (address.kind != Address::Kind::kTcp) return std::vector{UnixAddress(address.path)};
  return options.resolve ? options.resolve(address) : ResolveTcp(address);
}

// Each address of a name has a share of the time, so that an address that swallows packets leaves
// some to the others and to looking up the name again.
Deadline GetShare(Deadline deadline, size_t targets, const DialOptions& options) {
  const double left = deadline.PollMillis() / 1000.0;
  return Deadline::After(std::min(left / static_cast<double>(targets), options.connect_seconds));
}

absl::StatusOr<Attempt> TryAll(const Address& address, const DialOptions& options,
                               Deadline deadline, const Interrupt& interrupt) {
  Attempt attempt;
  const absl::StatusOr<std::vector<SocketAddress>> targets = GetTargets(address, options);
  if (!targets.ok()) {
    attempt.error = targets.status();
    return attempt;
  }
  const bool is_name =
      address.kind == Address::Kind::kTcp && !net::internal::ParseAddress(address.host).ok();
  for (size_t i = 0; i < targets->size(); ++i) {
    const SocketAddress& target = (*targets)[i];
    Descriptor fd(socket(target.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.valid()) return ErrnoStatus(errno, "make a socket");
    const Deadline share = is_name ? GetShare(deadline, targets->size() - i, options) : deadline;
    absl::StatusOr<int> error = Connect(fd.get(), target, share, interrupt);
    if (absl::IsDeadlineExceeded(error.status()) && !interrupt.is_set() && !deadline.expired()) {
      error = ETIMEDOUT;
    }
    MUSTER_RETURN_IF_ERROR(error.status());
    if (*error == 0) {
      attempt.socket = std::move(fd);
      break;
    }
    attempt.error = ErrnoStatus(*error, "connect");
    attempt.may_pass = MayPass(*error);
  }
  return attempt;
}

absl::Status Rest(double seconds, Deadline deadline, const Interrupt& interrupt) {
  if (deadline.expired()) return absl::DeadlineExceededError("the deadline passed");
  const absl::Status status = WaitForDescriptor(-1, 0, Deadline::After(seconds), interrupt);
  return interrupt.is_set() ? status : absl::OkStatus();
}

// Any user of the machine may listen on an abstract name.
absl::StatusOr<Descriptor> CheckOwner(const Address& address, Descriptor socket) {
  if (!address.is_abstract() || PeerIsOurs(socket.get())) return socket;
  return absl::PermissionDeniedError("another user's process listens there");
}

absl::StatusOr<Descriptor> ConnectUntil(const Address& address, const DialOptions& options,
                                        Deadline deadline, const Interrupt& interrupt) {
  absl::Status last;
  double pause = kFirstPause;
  while (true) {
    absl::StatusOr<Attempt> attempt = TryAll(address, options, deadline, interrupt);
    absl::Status status = attempt.status();
    if (attempt.ok()) {
      if (attempt->socket.valid()) return CheckOwner(address, std::move(attempt->socket));
      if (!attempt->may_pass) return attempt->error;
      if (!options.wait_for_listener) return absl::NotFoundError(attempt->error.message());
      last = attempt->error;
      status = Rest(pause, deadline, interrupt);
    }
    if (interrupt.is_set()) return interrupt.status();
    if (absl::IsDeadlineExceeded(status) && !last.ok()) {
      return absl::DeadlineExceededError(
          StrCat("the deadline passed; the last attempt: ", last.message()));
    }
    MUSTER_RETURN_IF_ERROR(status);
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Stream>> Dial(const Address& address, const DialOptions& options,
                                             Deadline deadline, const Interrupt& interrupt) {
  std::string name = ToString(address);
  absl::StatusOr<Descriptor> socket = ConnectUntil(address, options, deadline, interrupt);
  if (!socket.ok() && interrupt.is_set()) return socket.status();
  if (!socket.ok()) return Annotate(socket.status(), StrCat("connect to ", name));
  if (address.kind == Address::Kind::kSharedMemory) {
    return SharedMemoryStream::Offer(*std::move(socket), std::move(name), options.shared_memory,
                                     deadline, interrupt);
  }
  const bool near = OnOneMachine(socket->get());
  MUSTER_ASSIGN_OR_RETURN(
      std::unique_ptr<Stream> stream,
      SocketStream::Create(*std::move(socket), std::move(name), options.socket));
  stream->set_wants_checksums(!near);
  if (address.kind != Address::Kind::kTcp) return stream;
  return ProtectDialed(std::move(stream), address.host, options.protection, deadline, interrupt);
}

}  // namespace muster::net::transport
