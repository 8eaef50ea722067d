#include "muster/net/transport/link_watch.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>

#include "absl/strings/match.h"

#include "muster/net/transport/address.h"
#include "muster/net/transport/socket_address.h"

namespace muster::net::transport {
namespace {

constexpr char kNothingCame[] = "neither data nor keep-alives";
constexpr int kKeepAliveSeconds = 1;  // until the first, and between two
// The number of probes without an answer: one probe may just have been sent.
constexpr int kUnanswered = 2;
constexpr int kSystemsProbes = 3;  // more than the timeout's

bool Get(int socket, int level, int name, int* value) {
  socklen_t size = sizeof *value;
  return getsockopt(socket, level, name, value, &size) == 0;
}

bool IsTcp(int socket) {
  int family = 0, type = 0;
  return Get(socket, SOL_SOCKET, SO_DOMAIN, &family) && Get(socket, SOL_SOCKET, SO_TYPE, &type) &&
         (family == AF_INET || family == AF_INET6) && type == SOCK_STREAM;
}

std::string GetEnd(int socket, bool far) {
  SocketAddress end;
  end.size = sizeof end.storage;
  const int failed =
      far ? getpeername(socket, end.get(), &end.size) : getsockname(socket, end.get(), &end.size);
  const auto address = failed == 0 ? FromSocketAddress(end, Address::Kind::kTcp)
                                   : absl::StatusOr<Address>(absl::UnknownError("?"));
  return address.ok() ? ToString(*address) : "?";
}

}  // namespace

void SetStallTimeout(int socket, int seconds) {
  int has = 0;
  if (!IsTcp(socket)) return;
  if (seconds == 0 && Get(socket, SOL_SOCKET, SO_KEEPALIVE, &has) && has != 0) return;
  if (seconds == 0) seconds = kDefaultStallSeconds;
  // Where no thread looks, the system ends an idle connection after this many probes.
  const int count = std::clamp(seconds, kMinStallSeconds, kMaxStallSeconds) + kSystemsProbes;
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepAliveSeconds, sizeof kKeepAliveSeconds);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepAliveSeconds, sizeof kKeepAliveSeconds);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

absl::Status CheckLink(int socket) {
  int seconds = 0;
  tcp_info info = {};
  socklen_t size = sizeof info;
  if (!IsTcp(socket) || !Get(socket, IPPROTO_TCP, TCP_KEEPCNT, &seconds) ||
      getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
    return absl::OkStatus();
  }
  seconds -= kSystemsProbes;
  const uint32_t silent_millis = std::min(info.tcpi_last_data_recv, info.tcpi_last_ack_recv);
  const bool due = info.tcpi_unacked > 0 || info.tcpi_probes >= kUnanswered;
  if (!due || silent_millis < static_cast<uint32_t>(seconds) * 1000) return absl::OkStatus();
  return absl::UnavailableError(StrCat(kNothingCame, " came from ", GetEnd(socket, /*far=*/true),
                                       " to ", GetEnd(socket, /*far=*/false), " for ",
                                       silent_millis / 1000,
                                       " s: the network between them, or that machine, is gone"));
}

bool IsBrokenLink(const absl::Status& status) {
  return absl::IsUnavailable(status) && absl::StrContains(status.message(), kNothingCame);
}

}  // namespace muster::net::transport
