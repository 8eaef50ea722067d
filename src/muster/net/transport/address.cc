#include "muster/net/transport/address.h"

#include <sys/un.h>

#include <utility>

#include "absl/strings/numbers.h"

namespace muster::net::transport {
namespace {

constexpr std::string_view kTcpPrefix = "tcp://";
constexpr std::string_view kUnixPrefix = "unix:";
constexpr std::string_view kSharedMemoryPrefix = "shm:";
constexpr size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;

absl::Status Bad(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(StrCat("address '", text, "': ", why));
}

absl::StatusOr<Address> ParseTcp(std::string_view text, std::string_view rest) {
  if (const size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    return Bad(text, StrCat("leave ", rest.substr(0, scheme + 3), " out; write HOST:PORT"));
  }
  const size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return Bad(text, "no port; write HOST:PORT");
  std::string_view host = rest.substr(0, colon);
  const std::string_view digits = rest.substr(colon + 1);
  uint32_t port = 0;
  if (!absl::SimpleAtoi(ToAbsl(digits), &port) || port > 65535 ||
      digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return Bad(text, StrCat("'", digits, "' is no port from 0 to 65535"));
  }
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return Bad(text, "an IPv6 address stands in brackets, as in [::1]:80");
  }
  if (host.empty()) return Bad(text, "no host; write HOST:PORT");
  return Address::Tcp(std::string(host), static_cast<uint16_t>(port));
}

absl::StatusOr<Address> ParsePath(std::string_view text, std::string_view path,
                                  Address::Kind kind) {
  if (path.empty() || path.find('\0') != std::string_view::npos) return Bad(text, "no path");
  if (path.size() > kMaxPath) {
    return Bad(text, StrCat("a socket's path has at most ", kMaxPath, " bytes, this one has ",
                            path.size(), "; take a shorter folder"));
  }
  return Address{.kind = kind, .path = std::string(path)};
}

}  // namespace

absl::StatusOr<Address> ParseAddress(std::string_view text) {
  if (text.starts_with(kTcpPrefix)) return ParseTcp(text, text.substr(kTcpPrefix.size()));
  if (text.starts_with(kUnixPrefix)) {
    return ParsePath(text, text.substr(kUnixPrefix.size()), Address::Kind::kUnix);
  }
  if (text.starts_with(kSharedMemoryPrefix)) {
    return ParsePath(text, text.substr(kSharedMemoryPrefix.size()), Address::Kind::kSharedMemory);
  }
  return Bad(text, "begins with none of tcp://, unix: and shm:");
}

absl::StatusOr<Address> ParseHostPort(std::string_view text) { return ParseTcp(text, text); }

std::string ToString(const Address& address) {
  switch (address.kind) {
    case Address::Kind::kUnix:
      return StrCat(kUnixPrefix, address.path);
    case Address::Kind::kSharedMemory:
      return StrCat(kSharedMemoryPrefix, address.path);
    default:
      break;
  }
  const bool v6 = address.host.find(':') != std::string::npos;
  return StrCat(kTcpPrefix, v6 ? "[" : "", address.host, v6 ? "]:" : ":", address.port);
}

}  // namespace muster::net::transport
