#include "muster/net/listen.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"

namespace muster::net::internal {
namespace {

constexpr int kBacklog = 1024;

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;
};

SocketAddress MakeAddress(const std::string& address, uint16_t port, bool is_v6) {
  SocketAddress made;
  if (is_v6) {
    sockaddr_in6 v6 = {};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr);
    std::memcpy(&made.storage, &v6, sizeof v6);
    made.size = sizeof v6;
  } else {
    sockaddr_in v4 = {};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    inet_pton(AF_INET, address.c_str(), &v4.sin_addr);
    std::memcpy(&made.storage, &v4, sizeof v4);
    made.size = sizeof v4;
  }
  return made;
}

std::pair<std::string, uint16_t> ReadAddress(const sockaddr_storage& storage) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (storage.ss_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &storage, sizeof v6);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      constexpr size_t kPrefixBytes = 12;
      inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[kPrefixBytes], text, sizeof text);
    } else {
      inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    }
    return {text, ntohs(v6.sin6_port)};
  }
  sockaddr_in v4;
  std::memcpy(&v4, &storage, sizeof v4);
  inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  return {text, ntohs(v4.sin_port)};
}

absl::Status ListenError(int error, const std::string& where) {
  const absl::Status status = ErrnoStatus(error, StrCat("listen on ", where));
  if (error == EADDRINUSE) {
    return absl::AlreadyExistsError(StrCat(
        status.message(), "; another program has this port: end it, or choose another port"));
  }
  if (error == EADDRNOTAVAIL) {
    return absl::InvalidArgumentError(
        StrCat(status.message(), "; no interface of this machine has the address"));
  }
  return status;
}

int MakeSocket(bool is_v6) {
  return socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

// Takes `fd`. `where` is for messages.
absl::StatusOr<Listener> BindAndListen(int fd, SocketAddress bound, const NumericAddress& kind,
                                       const std::string& where) {
  absl::Cleanup closer = [fd] { close(fd); };
  const int on = 1;  // a restarted coordinator takes its port back at once
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&bound.storage), bound.size) != 0 ||
      listen(fd, kBacklog) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&bound.storage), &bound.size) != 0) {
    return ListenError(errno, where);
  }
  std::move(closer).Cancel();
  return Listener{.descriptor = fd,
                  .port = ReadAddress(bound.storage).second,
                  .is_v6 = kind.is_v6,
                  .is_loopback = kind.is_loopback};
}

}  // namespace

absl::StatusOr<NumericAddress> ParseAddress(const std::string& address) {
  in_addr v4;
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) {
    return NumericAddress{.is_v6 = false, .is_loopback = (ntohl(v4.s_addr) >> 24) == 127};
  }
  in6_addr v6;
  if (inet_pton(AF_INET6, address.c_str(), &v6) == 1) {
    return NumericAddress{.is_v6 = true, .is_loopback = IN6_IS_ADDR_LOOPBACK(&v6) != 0};
  }
  return absl::InvalidArgumentError(StrCat(
      "listen on '", address, "': this is no IP address in numbers, such as 127.0.0.1 or ::1"));
}

std::string HostPort(const std::string& address, uint16_t port) {
  const bool brackets = address.find(':') != std::string::npos;
  return StrCat(brackets ? "[" : "", address, brackets ? "]:" : ":", port);
}

absl::StatusOr<Listener> ListenOn(const std::string& address, uint16_t port) {
  MUSTER_ASSIGN_OR_RETURN(const NumericAddress kind, ParseAddress(address));
  const std::string where = HostPort(address, port);
  const int fd = MakeSocket(kind.is_v6);
  if (fd < 0) return ErrnoStatus(errno, StrCat("listen on ", where));
  return BindAndListen(fd, MakeAddress(address, port, kind.is_v6), kind, where);
}

absl::StatusOr<Listener> ListenOnAll(uint16_t port) {
  const std::string where = StrCat("all addresses, port ", port);
  const int fd = MakeSocket(/*is_v6=*/true);
  const int off = 0;
  if (fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0) {
    return BindAndListen(fd, MakeAddress("::", port, true), {.is_v6 = true}, where);
  }
  if (fd >= 0) close(fd);
  return ListenOn("0.0.0.0", port);
}

int AcceptOne(int listener, std::string* peer, int* error) {
  SocketAddress from;
  from.size = sizeof from.storage;
  const int fd = accept4(listener, reinterpret_cast<sockaddr*>(&from.storage), &from.size,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    *error = errno;
    return -1;
  }
  const int on = 1;  // answers are small and wanted at once
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto [address, port] = ReadAddress(from.storage);
  *peer = HostPort(address, port);
  return fd;
}

}  // namespace muster::net::internal
