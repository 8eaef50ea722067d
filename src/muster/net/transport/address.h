// The address of a peer: "tcp://HOST:PORT", "unix:PATH", "shm:PATH". A PATH that begins with '@' is
// the name of a Linux abstract socket: in no folder, gone with its process, and valid in one
// network namespace, that is, on one machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "muster/base/status.h"

namespace muster::net::transport {

// Plain data. Its printed form parses back to it.
struct Address {
  enum class Kind {
    kTcp,
    kUnix,
    kSharedMemory,  // rings in memory, handed over by the unix socket at `path`
  };

  Kind kind = Kind::kTcp;
  std::string host = {};  // a name, or a numeric address without brackets
  uint16_t port = 0;
  std::string path = {};

  static Address Tcp(std::string host, uint16_t port) {
    return {.kind = Kind::kTcp, .host = std::move(host), .port = port};
  }
  bool is_abstract() const { return kind != Kind::kTcp && path.starts_with('@'); }
  friend bool operator==(const Address&, const Address&) = default;
};

// INVALID_ARGUMENT says what is wrong. A numeric IPv6 address must be in brackets. A path has at
// most 107 bytes, the system's limit.
absl::StatusOr<Address> ParseAddress(std::string_view text);
// Parses HOST:PORT, a TCP address without "tcp://".
absl::StatusOr<Address> ParseHostPort(std::string_view text);
std::string ToString(const Address& address);

}  // namespace muster::net::transport
