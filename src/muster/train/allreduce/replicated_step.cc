#include "muster/train/allreduce/replicated_step.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/collective/collectives.h"
#include "muster/train/allreduce/replica_state.h"
#include "muster/train/allreduce/segment_turns.h"
#include "muster/train/input/shards.h"
#include "muster/train/input/told_segments.h"
#include "muster/train/weights/dynamic_tables.h"

namespace muster::train {
namespace {

std::string CountReplicas(size_t count) {
  return StrCat(count, count == 1 ? " replica" : " replicas");
}

// Sums over the group in the order of ranks, so that every rank gets the same bits.
class GroupSums : public engine::ReplicaSums {
 public:
  explicit GroupSums(collective::Group& group) : group_(group) {}
  absl::Status Add(std::span<double> values) override {
    used_ = true;
    all_.resize(values.size() * static_cast<size_t>(group_.size()));
    MUSTER_RETURN_IF_ERROR(collective::AllGather(group_, std::as_bytes(values),
                                                 std::as_writable_bytes(std::span(all_))));
    std::fill(values.begin(), values.end(), 0.0);
    for (size_t i = 0; i < all_.size(); ++i) values[i % values.size()] += all_[i];
    return absl::OkStatus();
  }
  bool used() const { return used_; }

 private:
  collective::Group& group_;
  bool used_ = false;
  std::vector<double> all_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ReplicatedStep>> ReplicatedStep::Create(Session& session,
                                                                       Replicas& replicas) {
  std::unique_ptr<ReplicatedStep> step(new ReplicatedStep(session, replicas));
  MUSTER_ASSIGN_OR_RETURN(
      const model::RowTransform rows,
      model::NewRowTransform(session.model, /*with_labels=*/true, /*with_key=*/false));
  int bad_row = -1;
  MUSTER_RETURN_IF_ERROR(rows.transform->Apply(formats::Columns(rows.used.schema),
                                               /*with_labels=*/true, &step->no_rows_, &bad_row));
  return step;
}

absl::StatusOr<std::unique_ptr<Strategy>> Replicas::NewStrategy(Session& session) {
  MUSTER_RETURN_IF_ERROR(CheckReducible(session.model.spec));
  return ReplicatedStep::Create(session, *this);
}

absl::Status ReplicatedStep::Open() {
  MUSTER_RETURN_IF_ERROR(
      Join(replicas_.is_chief() ? state() : StateId(), absl::OkStatus()).status());
  // A chief that finds a newer state is a replacement.
  if (replicas_.is_chief() && generation_.source() != rank()) {
    NoteTakeOver();
    NoteContinuing();
  }
  changes_.clear();
  return absl::OkStatus();
}

// If the chief is lost before it has ended the training, its replacement needs the state of the
// other replicas.
absl::StatusOr<Strategy::Ending> ReplicatedStep::WaitForOthers() {
  if (replicas_.is_chief()) return Ending::kOver;
  const absl::Status left = replicas_.Leave();
  if (!absl::IsAborted(left)) return left.ok() ? absl::StatusOr<Ending>(Ending::kOver) : left;
  const absl::StatusOr<bool> moved = Join(state(), left);
  if (absl::IsCancelled(moved.status())) return Ending::kOver;
  MUSTER_RETURN_IF_ERROR(moved.status());
  return *moved ? Ending::kMoved : Ending::kContinue;
}

absl::StatusOr<Strategy::Result> ReplicatedStep::Run(const InputBatch* batch, Stop stop) {
  MUSTER_RETURN_IF_ERROR(update_.Begin());
  session_.previous_step = session_.step;
  MUSTER_ASSIGN_OR_RETURN(const Result result, RunUntilDone(batch, stop));
  const bool done = result.outcome == Outcome::kDone || result.outcome == Outcome::kNotFinite;
  if (done) MUSTER_RETURN_IF_ERROR(update_.Finish());
  return result;
}

absl::StatusOr<Strategy::Result> ReplicatedStep::RunUntilDone(const InputBatch* batch, Stop stop) {
  while (true) {
    absl::StatusOr<Result> result = TryRun(batch, stop);
    // The chief has ended the training and does not need this step.
    if (absl::IsCancelled(result.status())) return Result{.outcome = Outcome::kOver};
    if (!absl::IsAborted(result.status())) return result;
    session_.progress.Note(StrCat(result.status().message(), "; waiting for all replicas"));
    const absl::StatusOr<bool> moved = Join(state(), result.status());
    if (absl::IsCancelled(moved.status())) return Result{.outcome = Outcome::kOver};
    MUSTER_RETURN_IF_ERROR(moved.status());
    NoteTakeOver();
    NoteContinuing();
    if (*moved) return Result{.outcome = Outcome::kMoved};
  }
}

absl::StatusOr<Strategy::Result> ReplicatedStep::TryRun(const InputBatch* batch, Stop stop) {
  MUSTER_RETURN_IF_ERROR(generation_.group->Check());
  const Proposal mine = Propose(batch, stop);
  const auto is_last = [](const Proposal& all) { return all.stop != Stop::kNo || all.rows == 0; };
  if (expected_rows_ == 0) {
    MUSTER_ASSIGN_OR_RETURN(const Proposal first, Agree(mine));
    if (is_last(first)) return End(first);
    expected_rows_ = first.rows;
  }
  MUSTER_ASSIGN_OR_RETURN(Summed summed, Compute(batch, mine));
  if (is_last(summed.all)) return End(summed.all);
  if (summed.all.rows != expected_rows_) {
    expected_rows_ = summed.all.rows;
    MUSTER_ASSIGN_OR_RETURN(summed, Compute(batch, mine));
    if (summed.all.rows != expected_rows_) {
      return absl::DataLossError(StrCat("replicas proposed a step of ", expected_rows_,
                                        " rows, and then one of ", summed.all.rows));
    }
  }
  auto& [step, all] = summed;
  Measure();
  session_.data.all_bad_records = static_cast<uint64_t>(all.bad_records);
  sink_.Give();
  MUSTER_RETURN_IF_ERROR(GatherPositions());
  const bool finite = std::isfinite(step.loss);
  if (finite) ++session_.step;
  expected_rows_ = all.next_rows;
  Count(all.rows, finite, all.dropped, &session_.data.records);
  return Result{.outcome = finite ? Outcome::kDone : Outcome::kNotFinite,
                .values = {.loss = step.loss,
                           .data_loss = step.data_loss,
                           .rows = all.rows,
                           .epoch = batch != nullptr ? batch->epoch : 0,
                           .metric_states = std::move(step.metric_states)}};
}

// Of replicas without records, or with one that asks to stop.
absl::StatusOr<Strategy::Result> ReplicatedStep::End(const Proposal& all) {
  expected_rows_ = 0;
  session_.data.all_bad_records = static_cast<uint64_t>(all.bad_records);
  ToldSegments* const segments = session_.data.segments;
  if (segments != nullptr && all.stop == Stop::kNo) {
    MUSTER_RETURN_IF_ERROR(
        TellSegment(*generation_.group, replicas_.is_chief(), segments->number() + 1, session_)
            .status());
    return Result{.outcome = Outcome::kWaited};
  }
  session_.data.dropped_at_end = all.dropped_at_end;
  const bool signal = all.stop == Stop::kInterrupted;
  return Result{.outcome = signal ? Outcome::kInterrupted : Outcome::kOver};
}

absl::StatusOr<ReplicatedStep::Summed> ReplicatedStep::Compute(const InputBatch* batch,
                                                               Proposal mine) {
  const int rows = batch != nullptr ? batch->features.rows : 0;
  const double share = std::min(1.0, static_cast<double>(rows) / expected_rows_);
  const bool overlaps = overlap_;
  sink_.Begin(*generation_.group, update_.sink(), share, overlaps);
  GroupSums sums(*generation_.group);
  auto step = session_.model.engine->Step(session_.variables.views(),
                                          batch != nullptr ? batch->features : no_rows_,
                                          {.seed = session_.config.seed,
                                           .step = session_.step,
                                           .replica = static_cast<uint32_t>(rank()),
                                           .denominator = static_cast<double>(expected_rows_),
                                           .replica_sums = &sums},
                                          sink_);
  if (!step.ok()) {
    sink_.Abandon();
    return step.status();
  }
  overlap_ = !sums.used() && cores_ > 1;
  StopWork();
  mine.seconds = static_cast<float>(static_cast<double>(worked_nanos_) * 1e-9);
  worked_nanos_ = 0;
  // The others can still stop before this step, of which this replica has sent nothing yet.
  if (size() > 1 && !overlaps && !sums.used()) MUSTER_RETURN_IF_ERROR(generation_.group->Check());
  MUSTER_RETURN_IF_ERROR(sink_.Reduce(&*step, MakeNote(mine, PositionAfter(batch)), &positions_));
  working_since_ = session_.clock.MonotonicNanos();
  MUSTER_RETURN_IF_ERROR(TakeProposals());
  MUSTER_ASSIGN_OR_RETURN(const Proposal all, SumUp());
  return Summed{.step = *std::move(step), .all = all};
}

void ReplicatedStep::Fail(const absl::Status& why) {
  if (generation_.group != nullptr) generation_.group->Fail(why).IgnoreError();
}

Proposal ReplicatedStep::Propose(const InputBatch* batch, Stop stop) const {
  Proposal mine = {.stop = stop};
  const auto most = static_cast<uint64_t>(GetMostCount(static_cast<size_t>(size())));
  mine.bad_records = static_cast<int32_t>(std::min(session_.data.bad_records, most));
  if (batch != nullptr) {
    mine.rows = batch->features.rows;
    mine.dropped = batch->dropped;
  } else {
    mine.dropped_at_end = static_cast<int32_t>(session_.data.dropped_at_end);
  }
  const bool is_last = session_.step + 1 == session_.max_steps;
  const std::optional<int> next = input_ != nullptr ? input_->next_rows() : std::nullopt;
  mine.next_rows = is_last ? 0 : next.value_or(mine.rows);
  return mine;
}

// Exchanges proposals without a step.
absl::StatusOr<Proposal> ReplicatedStep::Agree(const Proposal& mine) {
  proposals_.resize(static_cast<size_t>(size()));
  StopWork();
  MUSTER_RETURN_IF_ERROR(collective::AllGather(*generation_.group,
                                               std::as_bytes(std::span(&mine, 1)),
                                               std::as_writable_bytes(std::span(proposals_))));
  working_since_ = session_.clock.MonotonicNanos();
  return SumUp();
}

// Moves the proposals from the notes, whose rest are positions.
absl::Status ReplicatedStep::TakeProposals() {
  proposals_.resize(positions_.size());
  for (size_t i = 0; i < positions_.size(); ++i) {
    const std::optional<Proposal> proposal = TakeProposal(&positions_[i]);
    if (!proposal) {
      return generation_.group->Accuse(static_cast<int>(i), "sent gradients without a proposal");
    }
    proposals_[i] = *proposal;
  }
  return absl::OkStatus();
}

absl::StatusOr<Proposal> ReplicatedStep::SumUp() const {
  const std::optional<size_t> wrong = FindImpossible(proposals_);
  if (!wrong) return SumProposals(proposals_);
  return generation_.group->Accuse(static_cast<int>(*wrong),
                                   Describe(proposals_[*wrong], proposals_.size()));
}

// Work is all but the waits for other replicas.
void ReplicatedStep::StopWork() {
  worked_nanos_ += session_.clock.MonotonicNanos() - working_since_;
}

void ReplicatedStep::Measure() {
  work_.resize(proposals_.size());
  for (size_t i = 0; i < proposals_.size(); ++i) {
    work_[i] = {.rows = proposals_[i].rows, .seconds = proposals_[i].seconds};
  }
  rates_.Add(work_);
}

// Returns the position at which this replica continues after the step: after its batch or, without
// a batch, its present position.
std::string ReplicatedStep::PositionAfter(const InputBatch* batch) const {
  if (session_.data.shards > 0) {
    return batch != nullptr ? MakeShardNote(batch->shard, batch->position) : "";
  }
  if (batch != nullptr) return data::SerializePosition(batch->position);
  const auto own = static_cast<size_t>(rank());
  return own < session_.data.positions.size() ? session_.data.positions[own] : "";
}

// Stores the positions of all replicas, which arrived with their gradients.
absl::Status ReplicatedStep::GatherPositions() {
  if (session_.data.shards == 0) {
    session_.data.positions.swap(positions_);
    return absl::OkStatus();
  }
  const std::optional<size_t> wrong =
      MergeShardNotes(positions_, session_.data.shards, &session_.data.positions);
  if (!wrong) return absl::OkStatus();
  return generation_.group->Accuse(
      static_cast<int>(*wrong),
      StrCat("sent '", positions_[*wrong], "', which is not a position in a shard of the data"));
}

absl::StatusOr<bool> ReplicatedStep::Join(StateId state, absl::Status why) {
  bool moved = false;
  const absl::Status first = why;
  const int old_rank = generation_.group != nullptr ? rank() : -1;
  const std::vector<std::string> before =
      generation_.group != nullptr ? generation_.group->names() : std::vector<std::string>();
  while (true) {
    // The group ends before Join: its channels belong to the old generation.
    generation_.group.reset();
    absl::StatusOr<ReplicaGeneration> joined = replicas_.Join(state, why);
    if (!joined.ok()) {
      misses_others_ = whole_ && old_rank >= 0 && absl::IsDeadlineExceeded(joined.status());
      return Stopped(joined.status());
    }
    generation_ = *std::move(joined);
    expected_rows_ = 0;
    rates_.Begin(generation_.group->names());
    bool overwritten = false;
    absl::Status status = AdoptNewestState(&overwritten);
    if (status.ok() && session_.data.segments != nullptr) {
      status = TellPresentSegment(*generation_.group, replicas_.is_chief(), session_);
    }
    moved = moved || overwritten;
    whole_ = overwritten ? received_ : whole_;
    if (status.ok()) break;
    if (!absl::IsAborted(status)) return Stopped(status);
    // A replica was lost while states were copied. An incomplete state counts as none.
    if (overwritten) state = received_ ? this->state() : StateId();
    why = status;
  }
  state_generation_ = generation_.generation;
  worked_nanos_ = 0;
  working_since_ = session_.clock.MonotonicNanos();
  // Replicas that know a later segment than the positions have go back to the others.
  if (session_.data.shards == 0) return moved || session_.data.segments != nullptr;
  NoteChanges(before, first);
  return moved || rank() != old_rank || std::cmp_not_equal(size(), before.size());
}

// The status with which Join ends. A stop becomes an error if the state is incomplete, so that it
// is not saved.
absl::Status ReplicatedStep::Stopped(const absl::Status& why) const {
  if (whole_ || !absl::IsCancelled(why)) return why;
  return absl::UnavailableError(
      "stopped while it copied the state of another replica, which is incomplete: nothing was "
      "saved");
}

// Says which replicas came without the newest state, and whose they have now.
void ReplicatedStep::NoteTakeOver() {
  const auto source = static_cast<size_t>(generation_.source());
  const std::vector<std::string>& names = generation_.group->names();
  std::vector<std::string> others;
  for (size_t rank = 0; rank < names.size(); ++rank) {
    if (generation_.states[rank] != generation_.states[source]) others.push_back(names[rank]);
  }
  if (others.empty()) return;
  session_.progress.Note(StrCat(absl::StrJoin(others, ", "), " took over the state of ",
                                names[source], " at step ", session_.step));
}

void ReplicatedStep::NoteContinuing() {
  session_.progress.Note(StrCat("continuing at step ", session_.step, " with ",
                                CountReplicas(static_cast<size_t>(size())), " (generation ",
                                generation(), ")"));
}

// Records which replicas left or joined since `before`.
void ReplicatedStep::NoteChanges(const std::vector<std::string>& before, const absl::Status& why) {
  const std::vector<std::string>& now = generation_.group->names();
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::string> left;
  std::ranges::copy_if(before, std::back_inserter(left),
                       [&](const std::string& name) { return !has(now, name); });
  const std::string_view cause = ToStd(why.message());
  for (const std::string& name : left) {
    // The cause is that of the first change, and need not be about this replica.
    const bool is_its_own =
        cause.find(name + " ") != cause.npos || cause.find(name + ")") != cause.npos;
    changes_.push_back(StrCat(name, " left at step ", session_.step,
                              is_its_own ? StrCat(" (", cause, ")") : "", ": ",
                              CountReplicas(now.size())));
  }
  for (const std::string& name : now) {
    if (has(before, name)) continue;
    changes_.push_back(
        StrCat(name, " joined at step ", session_.step, ": ", CountReplicas(now.size())));
  }
}

absl::Status ReplicatedStep::AdoptNewestState(bool* overwritten) {
  const int source = generation_.source();
  const StateId newest = generation_.states[static_cast<size_t>(source)];
  if (newest.step < 0 && replicas_.is_chief()) {
    return absl::UnavailableError(
        "the only replica with a state was lost while this one copied the state: start again from "
        "the newest checkpoint");
  }
  if (newest.step < 0) {
    return absl::AbortedError("no replica has a state; waiting for the chief's");
  }
  received_ = false;
  MUSTER_ASSIGN_OR_RETURN(received_, ShareState(*generation_.group, generation_.GetTransfer(),
                                                newest.step, session_, overwritten));
  if (received_) state_generation_ = newest.generation;
  return collective::Barrier(*generation_.group);
}

}  // namespace muster::train
