// ServerState's pushes: when each counts, and what it does to the weights.
#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/math/vector.h"
#include "muster/ps/server_state.h"

namespace muster::ps {

// Synchronous, on the servers that do not lead: whoever comes with the next round knows that the
// lead has all pushes of this one, and whether they were applied.
absl::Status ServerState::Commit(int64_t sequence, int64_t step) {
  const int64_t round = sequences_.front();
  if (sequence == round && step == step_) return absl::OkStatus();
  const bool all = std::all_of(staged_.begin(), staged_.end(),
                               [](const auto& each) { return each.has_value(); });
  if (lead() || sequence != round + 1 || !all || step < step_ || step > step_ + 1) {
    return Behind(sequence);
  }
  if (step > step_) ApplySum();
  FinishRound();
  return absl::OkStatus();
}

// Synchronous, on the lead: when it has all pushes, and nobody saves the state before.
void ServerState::EndRound() {
  if (!spec_.synchronous || !lead() || held_by_ != 0) return;
  Pushed round = {.step = step_, .finite = 1};
  for (const auto& each : staged_) {
    if (!each) return;
    round.finite &= each->push.finite;
    round.loss += each->push.loss;
    round.data_loss += each->push.data_loss;
  }
  if (!std::isfinite(round.loss)) round.finite = 0;
  if (round.finite != 0) ApplySum();
  round.step = step_;
  last_ = round;
  FinishRound();
}

// Asynchronous, on the lead. Who waits has nothing under way that anybody waits for, so that the
// slowest always may.
bool ServerState::MayBegin(size_t replica) const {
  if (spec_.staleness < 0) return true;
  for (size_t other = 0; other < sequences_.size(); ++other) {
    const bool lives = now_ < heard_[other] + spec_.lease_seconds;
    if (finished_.contains(other) || !lives) continue;
    if (sequences_[replica] > sequences_[other] + spec_.staleness) return false;
  }
  return true;
}

// Asynchronous, on the servers that do not lead: a replica that comes with its next batch knows
// that the lead has the one before.
void ServerState::CommitOwn(size_t replica, int64_t sequence) {
  std::optional<Staged>& staged = staged_[replica];
  if (sequence != sequences_[replica] + 1 || !staged) return;
  ApplyOwn(replica, staged->push);
  staged.reset();
}

absl::Status ServerState::PushNow(Peer& peer, Staged staged) {
  const int64_t sequence = staged.push.sequence;
  in_flight_.erase(owners_[peer.replica]);
  CommitOwn(peer.replica, sequence);
  if (lead() && sequence < sequences_[peer.replica]) return absl::OkStatus();  // it was applied
  if (sequence != sequences_[peer.replica]) return Behind(sequence);
  if (lead()) {
    ApplyOwn(peer.replica, staged.push);
  } else {
    staged_[peer.replica] = std::move(staged);
  }
  return absl::OkStatus();
}

void ServerState::ApplyOwn(size_t replica, const Push& push) {
  if (push.finite != 0) shard_.Apply({push.given, push.dense, push.tables}, step_++);
  positions_[replica] = push.position;
  ++sequences_[replica];
}

void ServerState::FinishRound() {
  for (size_t replica = 0; replica < staged_.size(); ++replica) {
    positions_[replica] = std::move(staged_[replica]->push.position);
    staged_[replica].reset();
    wishes_[replica].reset();
    ++sequences_[replica];
  }
  decided_.reset();
}

void ServerState::ApplySum() {
  Gradient sum;
  std::vector<uint32_t> given(variables_.size());
  dense_sum_.assign(static_cast<size_t>(placement_.dense_floats(spec_.server)), 0);
  bool first = true;
  std::map<uint32_t, std::vector<collective::RowList>> lists;
  for (const auto& staged : staged_) {
    const Push& push = staged->push;
    for (const TableRows& table : push.tables) {
      lists[table.variable].push_back({.rows = table.rows, .values = table.values});
    }
    if (push.dense.empty()) continue;
    for (size_t i = 0; i < given.size(); ++i) given[i] |= push.given[i];
    if (std::exchange(first, false)) {
      std::copy(push.dense.begin(), push.dense.end(), dense_sum_.begin());
    } else {
      math::AddTo(push.dense.data(), dense_sum_.data(), push.dense.size());
    }
  }
  sum.given = given;
  sum.dense = dense_sum_;
  for (const auto& [variable, ranks] : lists) {
    const Part& part = placement_.part(static_cast<int>(variable), spec_.server);
    const auto [found, made] = sums_.try_emplace(variable, part.rows, part.cols);
    const collective::RowList rows = found->second.Sum(ranks);
    sum.tables.push_back({.variable = variable, .rows = rows.rows, .values = rows.values});
  }
  shard_.Apply(sum, step_++);
}

absl::Status ServerState::CommitAll(std::span<const int64_t> sequences) {
  if (sequences.size() != sequences_.size()) {
    return absl::InvalidArgumentError(
        StrCat("batches of ", sequences.size(), " replicas, there are ", sequences_.size()));
  }
  for (size_t replica = 0; replica < sequences.size(); ++replica) {
    CommitOwn(replica, sequences[replica]);
    if (sequences_[replica] != sequences[replica]) return Behind(sequences[replica]);
  }
  return absl::OkStatus();
}

}  // namespace muster::ps
