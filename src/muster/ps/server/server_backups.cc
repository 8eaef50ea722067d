// ServerState's synchronous steps with backup replicas: a step is made of the first
// PsOptions::aggregate pushes.
#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/ps/server/server_state.h"

namespace muster::ps {

// Accepts a push for a step. On servers other than the lead, keeps it until the lead's word says
// whether it counts.
absl::Status ServerState::PushForStep(size_t replica, Staged staged) {
  const Push& push = staged.push;
  if (push.rows == 0) return absl::InvalidArgumentError("a push of a batch without rows");
  if (!lead()) {
    staged_[replica] = std::move(staged);
    return absl::OkStatus();
  }
  if (push.sequence != sequences_[replica]) return UnexpectedBatch(push.sequence);
  if (push.finite == 0 || !std::isfinite(push.loss)) {
    answers_[replica] = {.finite = 0, .loss = push.loss, .data_loss = push.data_loss};
    FinishBatch(replica, push, /*trained=*/false);
  } else if (push.step != step_ || unsettled_) {
    answers_[replica] = last_;
    answers_[replica].stale = 1;
    FinishBatch(replica, push, /*trained=*/false);
  } else {
    staged_[replica] = std::move(staged);
    EndRound();
  }
  return absl::OkStatus();
}

// Fills in the answer to a push; returns false if the step is not done yet.
bool ServerState::AnswerPushForStep(const Peer& peer, Pushed* answer) {
  if (!peer.pushed) return false;
  if (*peer.pushed < sequences_[peer.replica]) {
    *answer = answers_[peer.replica];
  } else if (stop_ != 0) {
    staged_[peer.replica].reset();
    answer->stop = stop_;
  } else {
    return false;
  }
  answer->step = step_;
  answer->counts = GetCounts();
  return true;
}

// Whether there are enough pushes for a step: PsOptions::aggregate of them, or those of all
// replicas whose data has not ended.
bool ServerState::HasEnough() const {
  const auto there = std::count_if(staged_.begin(), staged_.end(),
                                   [](const auto& each) { return each.has_value(); });
  const auto unfinished = static_cast<int64_t>(staged_.size() - finished_.size());
  return there > 0 && there >= std::min<int64_t>(spec_.training.aggregate, unfinished);
}

// On the lead: ends the step if there are enough pushes and no replica wants to stop. EndRound has
// checked that the state is not being saved.
void ServerState::EndStep() {
  if (stop_ != 0 || !HasEnough()) return;
  double rows = 0, loss = 0, data_loss = 0;
  word_.counted.assign(staged_.size(), -1);
  for (size_t replica = 0; replica < staged_.size(); ++replica) {
    if (!staged_[replica]) continue;
    const Push& push = staged_[replica]->push;
    word_.counted[replica] = push.sequence;
    rows += push.rows;
    loss += double{push.loss} * push.rows;
    data_loss += double{push.data_loss} * push.rows;
  }
  last_ = {.finite = 1,
           .loss = static_cast<float>(loss / rows),
           .data_loss = static_cast<float>(data_loss / rows)};
  for (size_t replica = 0; replica < staged_.size(); ++replica) {
    if (!staged_[replica]) continue;
    FinishBatch(replica, staged_[replica]->push, /*trained=*/true);
    answers_[replica] = last_;
  }
  FinishRound(rows);
}

// On servers other than the lead: returns the number of rows of the batches that count, all of
// which must be staged. Drops staged batches that do not count.
absl::StatusOr<double> ServerState::CountedRows(int64_t step, const Word& word) {
  const absl::Status wrong_step = absl::AbortedError(
      StrCat("ps-", spec_.server, " is at step ", step_, " and cannot advance to step ", step));
  if (step != step_ + 1 || word.counted.size() != staged_.size()) return wrong_step;
  double rows = 0;
  for (size_t replica = 0; replica < staged_.size(); ++replica) {
    const auto& staged = staged_[replica];
    if (word.counted[replica] < 0) continue;
    const bool is_there =
        staged && staged->push.sequence == word.counted[replica] && staged->push.step == step_;
    if (!is_there) return wrong_step;
    rows += staged->push.rows;
  }
  for (size_t replica = 0; replica < staged_.size(); ++replica) {
    if (word.counted[replica] < 0) staged_[replica].reset();
  }
  return rows;
}

// On servers other than the lead: advances to the lead's step with the batches that its word names.
absl::Status ServerState::CommitCounted(int64_t step, const Word& word) {
  if (step <= step_) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(CheckScales(word));
  MUSTER_ASSIGN_OR_RETURN(const double rows, CountedRows(step, word));
  weights_.Apply(Sum(rows), step_++, word.scales);
  for (auto& staged : staged_) staged.reset();
  return absl::OkStatus();
}

}  // namespace muster::ps
