#include "muster/net/transport/refusal_log.h"

namespace muster::net::transport {
namespace {

constexpr int64_t kAlwaysSaid = 5;
// Beyond this many hosts, all others are counted as one.
constexpr size_t kMaxKinds = 64;
constexpr char kOthers[] = "other hosts";

bool IsPowerOfTen(int64_t count) {
  while (count % 10 == 0) count /= 10;
  return count == 1;
}

std::string HostIn(const std::string& peer) {
  const bool is_tcp = peer.starts_with("tcp://");
  return is_tcp ? peer.substr(0, peer.rfind(':')) : "this machine";
}

}  // namespace

std::optional<absl::Status> RefusalLog::Count(const std::string& peer, const absl::Status& why) {
  Kind kind = {HostIn(peer), why.code()};
  const MutexLock lock(&mutex_);
  if (counts_.size() >= kMaxKinds && !counts_.contains(kind)) kind.first = kOthers;
  const int64_t count = ++counts_[kind];
  if (count <= kAlwaysSaid) return why;
  if (!IsPowerOfTen(count)) return std::nullopt;
  return absl::Status(why.code(), StrCat(ToStd(why.message()), " (the ", count, "th of ",
                                         kind.first, "; most are not logged)"));
}

}  // namespace muster::net::transport
