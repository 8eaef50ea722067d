// Addresses in the form that system calls take.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/net/transport/address.h"

namespace muster::net::transport {

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

// The path must be short enough (ParseAddress); '@' begins an abstract name.
SocketAddress UnixAddress(const std::string& path);

// The addresses of a host, in the system's order of preference. Resolving a name can take as long
// as the machine's resolver permits. UNAVAILABLE: not found now.
absl::StatusOr<std::vector<SocketAddress>> ResolveTcp(const Address& address);

// Whether both ends of a connected socket are on one machine: a unix socket, a loopback address at
// the other end, or the same address at both. A forwarded port can make two machines look like one.
bool OnOneMachine(int socket);

// `kind` decides between the two that use unix sockets. INVALID_ARGUMENT for other families.
absl::StatusOr<Address> FromSocketAddress(const SocketAddress& address, Address::Kind kind);

}  // namespace muster::net::transport
