// ServerState's synchronous rounds: when each of them ends, and how it changes the weights.
#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/math/vector.h"
#include "muster/ps/server/server_state.h"

namespace muster::ps {

bool ServerState::HasRound(int64_t sequence) const {
  const bool all = std::all_of(staged_.begin(), staged_.end(),
                               [](const auto& each) { return each.has_value(); });
  return !lead() && all && sequence == sequences_.front() + 1;
}

// On servers other than the lead: ends the staged round. A request for the next round shows that
// the lead has all pushes of this one; `step` shows whether they were applied.
absl::Status ServerState::Commit(int64_t sequence, int64_t step, const Word& word) {
  if (sequence == sequences_.front() && step == step_) return absl::OkStatus();
  if (!HasRound(sequence) || step < step_ || step > step_ + 1) return UnexpectedBatch(sequence);
  if (step > step_) {
    MUSTER_RETURN_IF_ERROR(CheckScales(word));
    weights_.Apply(Sum(0), step_++, word.scales);
  }
  for (size_t replica = 0; replica < staged_.size(); ++replica) {
    staged_[replica].reset();
    ++sequences_[replica];
  }
  return absl::OkStatus();
}

// On the lead: ends the round if all pushes are there and the state is not being saved.
void ServerState::EndRound() {
  if (!spec_.training.synchronous || !lead() || held_by_ != 0 || unsettled_) return;
  if (spec_.training.has_backups()) return EndStep();
  Pushed round = {.finite = 1};
  for (const auto& each : staged_) {
    if (!each) return;
    round.finite &= each->push.finite;
    round.loss += each->push.loss;
    round.data_loss += each->push.data_loss;
  }
  if (!std::isfinite(round.loss)) round.finite = 0;
  for (size_t replica = 0; replica < staged_.size(); ++replica) {
    FinishBatch(replica, staged_[replica]->push, round.finite != 0);
    proposals_[replica].reset();
  }
  decided_.reset();
  last_ = round;
  if (round.finite != 0) return FinishRound(0);
  for (auto& each : staged_) each.reset();
}

void ServerState::FinishBatch(size_t replica, const Push& push, bool trained) {
  Count(push, trained);
  positions_[replica] = push.position;
  ++sequences_[replica];
}

void ServerState::Count(const Push& push, bool finite) {
  (finite ? counts_.trained : counts_.dropped) += push.rows;
  counts_.dropped += push.dropped;
}

// On the lead: makes the next step of the staged pushes. For `rows`, see Sum.
void ServerState::FinishRound(double rows) {
  ++step_;
  rows_ = rows;
  word_.scales.clear();
  if (!spec_.clips_by_norm()) return Settled({});
  unsettled_ = true;
  if (spec_.servers == 1) Settled(GetScales(weights_.Squares(Sum(rows_))));
}

void ServerState::Settled(std::vector<float> scales) {
  unsettled_ = false;
  word_.scales = std::move(scales);
  weights_.Apply(Sum(rows_), step_ - 1, word_.scales);
  for (auto& each : staged_) each.reset();
}

absl::StatusOr<std::vector<double>> ServerState::OnMeasure(Connection from,
                                                           const Measure& measure) {
  MUSTER_RETURN_IF_ERROR(FindCurrentPeer(from, measure.generation).status());
  if (measure.step <= step_) return std::vector<double>();
  double rows = 0;
  if (spec_.training.has_backups()) {
    MUSTER_ASSIGN_OR_RETURN(rows, CountedRows(measure.step, measure.word));
  } else if (!HasRound(measure.sequence) || measure.step != step_ + 1) {
    return UnexpectedBatch(measure.sequence);
  }
  return weights_.Squares(Sum(rows));
}

absl::Status ServerState::OnSettle(Connection from, const Settle& settle) {
  MUSTER_RETURN_IF_ERROR(FindCurrentPeer(from, settle.generation).status());
  if (!unsettled_ || settle.step != step_) return absl::OkStatus();
  if (settle.squares.size() != variables_.size()) {
    return absl::InvalidArgumentError(StrCat("squares of ", settle.squares.size(),
                                             " variables, but there are ", variables_.size()));
  }
  std::vector<double> squares = weights_.Squares(Sum(rows_));
  for (size_t i = 0; i < squares.size(); ++i) squares[i] += settle.squares[i];
  Settled(GetScales(squares));
  return absl::OkStatus();
}

// The factors by which train/weights/clip_sink.cc would scale; a NaN norm gives NaN.
std::vector<float> ServerState::GetScales(std::span<const double> squares) const {
  const auto scale = [limit = spec_.clip.limit](double sum) {
    const double norm = std::sqrt(sum);
    return norm <= limit ? 1.0f : static_cast<float>(limit / norm);
  };
  double all = 0;
  for (const double each : squares) all += each;
  std::vector<float> scales;
  for (size_t i = 0; i < squares.size(); ++i) {
    const bool is_state = variables_[i].kind == Variable::Kind::kState;
    const bool alone = spec_.clip.kind == optim::ClipSpec::Kind::kNorm;
    scales.push_back(is_state ? 1.0f : scale(alone ? squares[i] : all));
  }
  return scales;
}

absl::Status ServerState::CheckScales(const Word& word) const {
  if (word.scales.size() == (spec_.clips_by_norm() ? variables_.size() : 0)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat("scales of ", word.scales.size(), " variables, but there are ", variables_.size()));
}

// The sum of the staged pushes, each weighted by its share of `rows`; with `rows` 0 they are added
// unweighted, since replicas have already divided by all rows. Valid until the next call.
Gradient ServerState::Sum(double rows) {
  weighted_.clear();
  given_.assign(variables_.size(), 0);
  dense_sum_.assign(static_cast<size_t>(placement_.dense_floats(spec_.server)), 0);
  bool first = true;
  std::map<uint32_t, std::vector<collective::RowList>> lists;
  std::map<uint32_t, std::vector<KeySums::List>> key_lists;
  for (const auto& staged : staged_) {
    if (!staged) continue;
    const Push& push = staged->push;
    const float weight = rows > 0 ? static_cast<float>(push.rows / rows) : 1;
    for (const TableRows& table : push.tables) {
      const std::span<const float> values =
          Weighted(table.values, variables_[table.variable].gradient_layout(), weight);
      if (variables_[table.variable].grows()) {
        key_lists[table.variable].push_back({.keys = table.keys, .values = values});
      } else {
        lists[table.variable].push_back({.rows = table.rows, .values = values});
      }
    }
    if (push.dense.empty()) continue;
    for (size_t i = 0; i < given_.size(); ++i) given_[i] |= push.given[i];
    const std::span<const float> dense = Weighted(push.dense, {}, weight);
    if (std::exchange(first, false)) {
      std::copy(dense.begin(), dense.end(), dense_sum_.begin());
    } else {
      math::AddTo(dense.data(), dense_sum_.data(), dense.size());
    }
  }
  Gradient sum = {.given = given_, .dense = dense_sum_};
  for (const auto& [variable, ranks] : lists) {
    const Part& part = placement_.part(static_cast<int>(variable), spec_.server);
    const collective::RowList all =
        sums_[variable].Sum(ranks, part.rows, variables_[variable].gradient_cols(), numbers_);
    sum.tables.push_back({.variable = variable, .rows = all.rows, .values = all.values});
  }
  for (const auto& [variable, ranks] : key_lists) {
    const auto [found, made] =
        key_sums_.try_emplace(variable, variables_[variable].gradient_cols());
    const KeySums::List all = found->second.Sum(ranks);
    sum.tables.push_back(
        {.variable = variable, .keys = {all.keys.begin(), all.keys.end()}, .values = all.values});
  }
  return sum;
}

std::span<const float> ServerState::Weighted(std::span<const float> values, optim::RowLayout layout,
                                             float weight) {
  if (weight == 1 || values.empty()) return values;
  std::vector<float>& own = weighted_.emplace_back(values.begin(), values.end());
  optim::ScaleEntries(weight, layout, own);
  return own;
}

}  // namespace muster::ps
