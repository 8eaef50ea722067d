// ServerState's asynchronous pushes: when each of them counts.
#include <utility>

#include "muster/ps/server/server_state.h"

namespace muster::ps {

// On the lead: whether the bound on staleness lets the replica begin its next batch. A replica that
// waits here holds up no other, and the slowest one may always begin, so there is no deadlock.
bool ServerState::MayBegin(size_t replica) const {
  if (spec_.training.staleness < 0) return true;
  for (size_t other = 0; other < sequences_.size(); ++other) {
    const bool lives = now_ < heard_[other] + spec_.lease_seconds;
    if (finished_.contains(other) || !lives) continue;
    if (sequences_[replica] > sequences_[other] + spec_.training.staleness) return false;
  }
  return true;
}

// On servers other than the lead: applies the replica's staged batch if `sequence` is the next one.
// A request for a replica's next batch shows that the lead has the previous one.
void ServerState::CommitOwn(size_t replica, int64_t sequence) {
  std::optional<Staged>& staged = staged_[replica];
  if (sequence != sequences_[replica] + 1 || !staged) return;
  ApplyOwn(replica, staged->push);
  staged.reset();
}

absl::Status ServerState::PushAsynchronous(Peer& peer, Staged staged) {
  const int64_t sequence = staged.push.sequence;
  in_flight_.erase(owners_[peer.replica]);
  CommitOwn(peer.replica, sequence);
  if (lead() && sequence < sequences_[peer.replica]) return absl::OkStatus();  // it was applied
  if (sequence != sequences_[peer.replica]) return UnexpectedBatch(sequence);
  if (lead()) {
    ApplyOwn(peer.replica, staged.push);
  } else {
    staged_[peer.replica] = std::move(staged);
  }
  return absl::OkStatus();
}

void ServerState::ApplyOwn(size_t replica, const Push& push) {
  if (push.finite != 0) weights_.Apply({push.given, push.dense, push.tables}, step_++);
  Count(push, push.finite != 0);
  positions_[replica] = push.position;
  ++sequences_[replica];
}

absl::Status ServerState::CommitAll(std::span<const int64_t> sequences) {
  if (sequences.size() != sequences_.size()) {
    return absl::InvalidArgumentError(StrCat("numbers of batches for ", sequences.size(),
                                             " replicas, but there are ", sequences_.size()));
  }
  for (size_t replica = 0; replica < sequences.size(); ++replica) {
    CommitOwn(replica, sequences[replica]);
    if (sequences_[replica] != sequences[replica]) return UnexpectedBatch(sequences[replica]);
  }
  return absl::OkStatus();
}

}  // namespace muster::ps
