#include "muster/net/transport/socket_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace muster::net::transport {
namespace {

// Returns an IP address without its port; an IPv4 one as IPv6 writes it. Other families have none.
in6_addr GetHost(const SocketAddress& address) {
  in6_addr host = {};
  if (address.family() == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address.storage, sizeof v6);
    return v6.sin6_addr;
  }
  sockaddr_in v4;
  std::memcpy(&v4, &address.storage, sizeof v4);
  host.s6_addr[10] = host.s6_addr[11] = 0xff;
  std::memcpy(&host.s6_addr[12], &v4.sin_addr, sizeof v4.sin_addr);
  return host;
}

bool IsLoopback(const in6_addr& host) {
  return IN6_IS_ADDR_LOOPBACK(&host) || (IN6_IS_ADDR_V4MAPPED(&host) && host.s6_addr[12] == 127);
}

}  // namespace

SocketAddress UnixAddress(const std::string& path) {
  SocketAddress made;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t n = std::min(path.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path, path.data(), n);
  // An abstract name begins with a zero byte and ends with its size.
  const bool abstract = path.starts_with('@');
  if (abstract) address.sun_path[0] = '\0';
  std::memcpy(&made.storage, &address, sizeof address);
  made.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + n + (abstract ? 0 : 1));
  return made;
}

absl::StatusOr<std::vector<SocketAddress>> ResolveTcp(const Address& address) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(StrCat("find host '", address.host, "': ", gai_strerror(error)));
  }
  std::vector<SocketAddress> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    SocketAddress& made = addresses.emplace_back();
    made.size = one->ai_addrlen;
    std::memcpy(&made.storage, one->ai_addr, one->ai_addrlen);
  }
  freeaddrinfo(found);
  return addresses;
}

bool OnOneMachine(int socket) {
  SocketAddress here, there;
  here.size = there.size = sizeof here.storage;
  if (getsockname(socket, here.get(), &here.size) != 0 ||
      getpeername(socket, there.get(), &there.size) != 0) {
    return false;
  }
  if (here.family() == AF_UNIX) return true;
  const in6_addr near = GetHost(here), far = GetHost(there);
  return IsLoopback(far) || std::memcmp(&near, &far, sizeof near) == 0;
}

absl::StatusOr<Address> FromSocketAddress(const SocketAddress& address, Address::Kind kind) {
  if (address.family() == AF_UNIX && kind != Address::Kind::kTcp) {
    sockaddr_un local = {};
    std::memcpy(&local, &address.storage, std::min<size_t>(address.size, sizeof local));
    local.sun_path[sizeof local.sun_path - 1] = '\0';
    return Address{.kind = kind, .path = local.sun_path};
  }
  std::array<char, NI_MAXHOST> host = {};
  std::array<char, NI_MAXSERV> port = {};
  const bool is_ip = address.family() == AF_INET || address.family() == AF_INET6;
  if (!is_ip || kind != Address::Kind::kTcp ||
      getnameinfo(address.get(), address.size, host.data(), host.size(), port.data(), port.size(),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return absl::InvalidArgumentError(
        StrCat("a socket of family ", address.family(), " is not of the kind that was asked for"));
  }
  return Address::Tcp(host.data(), static_cast<uint16_t>(std::stoi(port.data())));
}

}  // namespace muster::net::transport
