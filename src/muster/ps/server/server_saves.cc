// ServerState: how the chief loads a whole state and saves it.
#include "muster/ps/server/server_state.h"

namespace muster::ps {

absl::Status ServerState::OnBegin(Connection from, const Begin& begin) {
  MUSTER_RETURN_IF_ERROR(CheckChief(from));
  if (over()) return absl::CancelledError("training is over");
  if (begin.generation <= generation_) {
    return absl::AbortedError(StrCat("generation ", begin.generation, " is not after ", generation_,
                                     " of ps-", spec_.server));
  }
  Reset();
  weights_.ClearKeys();
  generation_ = begin.generation;
  phase_ = Phase::kLoading;
  broken_ = StrCat("ps-", spec_.server, " is loading the state of a checkpoint");
  return absl::OkStatus();
}

absl::Status ServerState::CheckLoading(Connection from, int64_t generation) {
  MUSTER_RETURN_IF_ERROR(CheckChief(from));
  if (phase_ == Phase::kLoading && generation == generation_) return absl::OkStatus();
  return absl::AbortedError(StrCat("ps-", spec_.server, " is not loading generation ", generation));
}

absl::Status ServerState::OnLoad(Connection from, const Slice& slice) {
  MUSTER_RETURN_IF_ERROR(CheckLoading(from, slice.generation));
  return weights_.Load(slice);
}

absl::Status ServerState::OnLoadKeys(Connection from, const KeySlice& slice) {
  MUSTER_RETURN_IF_ERROR(CheckLoading(from, slice.generation));
  return weights_.LoadKeys(slice);
}

absl::Status ServerState::OnReady(Connection from, const Ready& ready) {
  MUSTER_RETURN_IF_ERROR(CheckLoading(from, ready.generation));
  if (!ready.positions.empty() && ready.positions.size() != positions_.size()) {
    return absl::InvalidArgumentError(
        StrCat(ready.positions.size(), " positions of ", positions_.size(), " replicas"));
  }
  if (!ready.positions.empty()) positions_ = ready.positions;
  step_ = ready.step;
  counts_ = ready.counts;
  counts_.left_at_end = 0;
  loaded_trained_ = counts_.trained;
  heard_.assign(heard_.size(), now_);
  phase_ = Phase::kReady;
  UpdateWork(0);
  return absl::OkStatus();
}

absl::Status ServerState::OnHold(Connection from, const Hold& hold) {
  MUSTER_RETURN_IF_ERROR(FindCurrentPeer(from, hold.generation).status());
  MUSTER_RETURN_IF_ERROR(CheckChief(from));
  held_ = leaving_;
  if (spec_.training.has_backups()) {
    if (!lead()) return CommitCounted(hold.step, hold.word);
  } else if (spec_.training.synchronous && hold.step != step_) {
    return Commit(sequences_.front() + 1, hold.step, hold.word);
  }
  if (spec_.training.synchronous && !lead()) return absl::OkStatus();
  if (!lead()) return CommitAll(hold.sequences);
  held_by_ = from;
  return absl::OkStatus();
}

absl::StatusOr<bool> ServerState::AnswerHold(Connection from, const Hold& hold, Held* answer) {
  MUSTER_RETURN_IF_ERROR(FindCurrentPeer(from, hold.generation).status());
  if (!in_flight_.empty()) return false;
  *answer = {.step = step_,
             .positions = positions_,
             .sequences = sequences_,
             .counts = GetCounts(),
             .word = word_,
             .settle = static_cast<uint32_t>(unsettled_)};
  return true;
}

absl::Status ServerState::OnRelease(Connection from, const Begin& release) {
  MUSTER_RETURN_IF_ERROR(FindCurrentPeer(from, release.generation).status());
  if (held_) {  // no batch counts after the saved state
    phase_ = Phase::kEmpty;
    broken_ = DescribeLeaving();
    held_by_ = 0;
  }
  EndHold(from);
  return absl::OkStatus();
}

void ServerState::EndHold(Connection by) {
  if (by == 0 || held_by_ != by) return;
  held_by_ = 0;
  EndRound();
}

absl::StatusOr<std::span<const float>> ServerState::OnFetch(Connection from, const Slice& slice) {
  MUSTER_RETURN_IF_ERROR(FindCurrentPeer(from, slice.generation).status());
  return weights_.Fetch(slice);
}

absl::StatusOr<tables::DynamicTableEntries> ServerState::OnFetchKeys(Connection from,
                                                                     const KeySlice& slice) {
  MUSTER_RETURN_IF_ERROR(FindCurrentPeer(from, slice.generation).status());
  return weights_.FetchKeys(slice);
}

absl::StatusOr<const tables::DynamicTable*> ServerState::OnReadKeys(Connection from,
                                                                    int64_t generation,
                                                                    uint32_t variable) {
  MUSTER_RETURN_IF_ERROR(FindCurrentPeer(from, generation).status());
  return weights_.FindDynamicTable(variable);
}

}  // namespace muster::ps
