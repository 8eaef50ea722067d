// ServerState: which replicas the others wait for, and how long.
#include <algorithm>

#include "muster/base/strings.h"
#include "muster/ps/server/server_state.h"

namespace muster::ps {

// With backup replicas: whether fewer replicas are connected than a step needs.
bool ServerState::LacksReplicas() const {
  int64_t there = 0;
  for (size_t replica = 0; replica < owners_.size(); ++replica) {
    there += static_cast<int64_t>(owners_[replica] != 0 && !finished_.contains(replica));
  }
  const auto unfinished = static_cast<int64_t>(owners_.size() - finished_.size());
  return there < std::min<int64_t>(spec_.training.aggregate, unfinished);
}

// The time since which the chief, which has no data left, waits for all others; < 0: it does not.
double ServerState::GetAllAwaitedSince() const {
  const auto chief = connections_.find(owners_.front());
  return chief == connections_.end() ? -1 : chief->second.waits_for_all;
}

// Whether other replicas need this one. The chief is always needed: it alone saves and ends the
// training. Another replica is needed if a step waits for it or, at the end, the chief does.
bool ServerState::IsNeeded(size_t replica) const {
  if (over()) return false;
  if (replica == 0) return true;
  if (!lead() || finished_.contains(replica)) return false;
  if (GetAllAwaitedSince() >= 0) return true;
  return spec_.training.synchronous && (!spec_.training.has_backups() || LacksReplicas());
}

absl::Status ServerState::OnTick() {
  MUSTER_RETURN_IF_ERROR(failed_);
  if (!spec_.training.has_backups() || !LacksReplicas()) {
    lacking_since_.reset();
  } else if (!lacking_since_) {
    lacking_since_ = now_;
  }
  std::string overdue;
  for (size_t replica = 0; replica < owners_.size(); ++replica) {
    std::optional<double>& since = away_since_[replica];
    if (owners_[replica] != 0) {
      since.reset();
    } else if (!since) {
      since = now_;
    }
    if (!since || !IsNeeded(replica)) continue;
    // A replica that was not needed before is overdue only from the time when it was needed.
    double missed = *since;
    if (replica > 0) {
      missed = std::max({missed, GetAllAwaitedSince(), lacking_since_.value_or(missed)});
    }
    if (now_ < missed + spec_.rendezvous_seconds) continue;
    overdue += overdue.empty() ? DescribeAbsent(replica) : StrCat(", ", DescribeAbsent(replica));
  }
  if (overdue.empty()) return absl::OkStatus();
  failed_ = absl::UnavailableError(
      StrCat("ps-", spec_.server, " waited ", spec_.rendezvous_seconds, " s for ", overdue,
             ": find out why it did not connect, or give a longer --rendezvous-timeout; the same "
             "command continues from the newest checkpoint"));
  return failed_;
}

std::string ServerState::Awaited() const {
  std::string names;
  for (size_t replica = 0; replica < owners_.size(); ++replica) {
    if (!away_since_[replica] || owners_[replica] != 0 || !IsNeeded(replica)) continue;
    names += names.empty() ? DescribeAbsent(replica) : StrCat(", ", DescribeAbsent(replica));
  }
  return names;
}

std::string ServerState::DescribeAbsent(size_t replica) const {
  const auto refused = refused_.find(replica);
  if (refused == refused_.end()) return GetName(replica);
  return StrCat(GetName(replica), " (it tried to connect and was refused: ", refused->second, ")");
}

}  // namespace muster::ps
