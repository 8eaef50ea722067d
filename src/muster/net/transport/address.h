// Where a peer is reached: "tcp://HOST:PORT", "unix:PATH", "shm:PATH". A PATH that begins with '@'
// is a name of Linux's abstract sockets: in no folder, gone with its process, and of one network
// namespace, that is, of one machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "muster/base/status.h"

namespace muster::net::transport {

// Data. Prints as it is parsed.
struct Address {
  enum class Kind {
    kTcp,
    kUnix,
    kSharedMemory,  // rings in memory; `path` is the unix socket where they are handed over
  };

  Kind kind = Kind::kTcp;
  std::string host = {};  // a name, or numbers without brackets
  uint16_t port = 0;
  std::string path = {};

  static Address Tcp(std::string host, uint16_t port) {
    return {.kind = Kind::kTcp, .host = std::move(host), .port = port};
  }
  bool is_abstract() const { return kind != Kind::kTcp && path.starts_with('@'); }
  friend bool operator==(const Address&, const Address&) = default;
};

// INVALID_ARGUMENT says what is wrong with it. IPv6 in numbers stands in brackets. A path has at
// most 107 bytes, the system's limit.
absl::StatusOr<Address> ParseAddress(std::string_view text);
std::string ToString(const Address& address);

}  // namespace muster::net::transport
