#include "muster/net/transport/socket_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "muster/net/transport/kernel_tls.h"
#include "muster/net/transport/link_watch.h"
#include "muster/net/transport/socket_error.h"

namespace muster::net::transport {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;
// A smaller read goes through the buffer: a call for each would cost more than the copy.
constexpr size_t kDirectBytes = size_t{8} << 10;
// This much room in the buffer is worth a call; if less is left, the unread bytes are moved to the
// front first.
constexpr size_t kWorthACall = size_t{64} << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<SocketStream>> SocketStream::Create(process::Descriptor socket,
                                                                   std::string peer,
                                                                   const SocketOptions& options) {
  int family = 0, type = 0;
  socklen_t size = sizeof(int);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &family, &size) != 0 ||
      getsockopt(socket.get(), SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM) {
    return absl::InvalidArgumentError(
        StrCat("descriptor ", socket.get(), " for ", peer, " is no stream socket"));
  }
  MUSTER_RETURN_IF_ERROR(MakeNonBlocking(socket.get(), peer));
  const int on = 1;
  SetStallTimeout(socket.get(), options.stall_seconds);
  if (family != AF_UNIX) setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (const int bytes = options.buffer_bytes; bytes > 0) {  // the system may give less
    setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }
  return std::unique_ptr<SocketStream>(
      new SocketStream(std::move(socket), std::move(peer), family != AF_UNIX));
}

SocketStream::SocketStream(process::Descriptor socket, std::string peer, bool is_tcp)
    : Stream(std::move(peer)),
      socket_(std::move(socket)),
      is_tcp_(is_tcp),
      buffer_(kBufferBytes, kWorthACall) {}

absl::Status SocketStream::Closed() const {
  return absl::UnavailableError(StrCat("the connection to ", peer(), " was closed here"));
}

absl::StatusOr<size_t> SocketStream::Write(std::span<const ConstBytes> pieces) {
  if (!socket_.valid()) return Closed();
  std::array<iovec, kMaxPieces> parts;
  const size_t count = std::min(pieces.size(), kMaxPieces);
  for (size_t i = 0; i < count; ++i) {
    parts[i] = {.iov_base = const_cast<std::byte*>(pieces[i].data()), .iov_len = pieces[i].size()};
  }
  msghdr message = {};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  while (true) {
    const ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) return PeerGone(errno, peer(), "send");
  }
}

absl::StatusOr<size_t> SocketStream::Receive(MutableBytes direct, MutableBytes room) {
  if (!socket_.valid()) return Closed();
  std::array<iovec, 2> parts = {iovec{.iov_base = direct.data(), .iov_len = direct.size()},
                                iovec{.iov_base = room.data(), .iov_len = room.size()}};
  msghdr message = {};
  message.msg_iov = direct.empty() ? &parts[1] : parts.data();
  message.msg_iovlen = direct.empty() ? 1 : 2;
  while (true) {
    const ssize_t got = recvmsg(socket_.get(), &message, MSG_DONTWAIT);
    if (got > 0) {
      const auto n = static_cast<size_t>(got);
      if (n > direct.size()) buffer_.Grow(n - direct.size());
      return n;
    }
    if (got == 0) return PeerClosed(peer());
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) return PeerGone(errno, peer(), "receive");
  }
}

// The kernel is asked only if all bytes left were shown already and the caller wants more.
absl::StatusOr<ConstBytes> SocketStream::Peek() {
  if (buffer_.size() < 8) {
    const absl::Status got = Receive({}, buffer_.MakeRoom()).status();
    if (!got.ok() && buffer_.size() <= shown_) return got;
  }
  shown_ = buffer_.size();
  return buffer_.bytes();
}

void SocketStream::Consume(size_t n) {
  buffer_.Consume(n);
  shown_ = 0;
}

absl::StatusOr<size_t> SocketStream::Read(MutableBytes to) {
  if (!buffer_.empty() || to.size() < kDirectBytes) return Stream::Read(to);
  MUSTER_ASSIGN_OR_RETURN(const size_t got, Receive(to, buffer_.MakeRoomAfter(to.size())));
  const size_t direct = std::min(got, to.size());
  buffer_.Pass(direct);
  return direct;
}

PollWish SocketStream::Arm(bool read, bool write) {
  const int events = (read ? POLLIN : 0) | (write ? POLLOUT : 0);
  return {.fd = socket_.get(), .events = static_cast<short>(socket_.valid() ? events : 0)};
}

void SocketStream::Close() { socket_.Reset(); }

absl::Status SocketStream::SetTlsKey(const TlsKey& key) {
  if (!is_tcp_) return Stream::SetTlsKey(key);
  return socket_.valid() ? SetKernelTlsKey(socket_.get(), key, peer()) : Closed();
}

absl::StatusOr<bool> SocketStream::WriteTlsRecord(uint8_t type, ConstBytes record, double seconds) {
  if (!socket_.valid()) return Closed();
  return SendKernelTlsRecord(socket_.get(), type, record, seconds, peer());
}

}  // namespace muster::net::transport
