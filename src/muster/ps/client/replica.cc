#include "muster/ps/client/replica.h"

#include <algorithm>
#include <utility>

namespace muster::ps {
namespace {

constexpr int64_t kPerIncarnation = 1'000'000;  // generations

}  // namespace

absl::StatusOr<bool> Replica::Recover(const absl::Status& why) {
  if (!why.ok()) Note(StrCat(why.message(), "; waiting for the parameter servers"));
  while (true) {
    absl::StatusOr<bool> moved = TryRecover();
    if (absl::IsAborted(moved.status())) continue;
    if (moved.ok() && opened_ && !why.ok()) Note(StrCat("continuing at step ", step_));
    opened_ = opened_ || moved.ok();
    return moved;
  }
}

absl::StatusOr<bool> Replica::TryRecover() {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<State> states, client_.Connect(generation_, work_));
  const State& lead = states.front();
  int lost = -1;
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].phase == Phase::kOver) return absl::CancelledError("training is over");
    if (states[i].phase != Phase::kReady || states[i].generation != lead.generation) {
      lost = static_cast<int>(i);
    }
  }
  if (lost < 0) return AdoptState(lead);
  if (is_chief()) {
    MUSTER_RETURN_IF_ERROR(LoadServers(states));
  } else {
    if (lead.phase == Phase::kReady) {
      MUSTER_RETURN_IF_ERROR(client_.TellBroken(
          lead.generation, StrCat("ps-", lost, " was started again and has no state")));
    }
    MUSTER_RETURN_IF_ERROR(client_.WaitForState(lead.generation - 1).status());
  }
  return absl::AbortedError("the servers have a state now: connect again");
}

bool Replica::AdoptState(const State& lead) {
  const bool moved = opened_ && (lead.generation != generation_ || lead.sequence != sequence_);
  generation_ = lead.generation;
  sequence_ = lead.sequence;
  step_ = lead.step;
  position_ = lead.position;
  UpdateCounts(lead.counts);
  return moved;
}

void Replica::UpdateCounts(const Counts& counts) {
  counts_ = counts;
  work_ = std::max(work_, counts.work());
}

absl::Status Replica::LoadServers(const std::vector<State>& states) {
  // Servers and a chief that were started again do not know earlier generations. No number may be
  // used twice, else a replica could mistake another state for its own.
  int64_t generation = std::max(
      generation_, static_cast<int64_t>(client_.spec().self.incarnation) * kPerIncarnation);
  for (const State& state : states) generation = std::max(generation, state.generation);
  MUSTER_ASSIGN_OR_RETURN(const Place place, spec_.give(opened_));
  if (opened_) {
    Note(StrCat("a parameter server lost its state: all replicas go back from step ", step_,
                " to the checkpoint of step ", place.step, ", ", step_ - place.step,
                " steps are repeated"));
  }
  return client_.LoadAll({.generation = generation + 1,
                          .step = place.step,
                          .positions = place.positions,
                          .counts = place.counts},
                         spec_.memory, spec_.dynamic_table, place.checkpoint);
}

absl::StatusOr<Replica::Turn> Replica::Try(const std::function<absl::Status()>& work) {
  if (std::exchange(moved_, false)) return Turn::kMoved;
  while (true) {
    const absl::Status worked = work();
    if (worked.ok()) return Turn::kDone;
    if (absl::IsCancelled(worked)) return Turn::kOver;
    if (!absl::IsAborted(worked)) return worked;
    const absl::StatusOr<bool> moved = Recover(worked);
    if (absl::IsCancelled(moved.status())) return Turn::kOver;
    MUSTER_RETURN_IF_ERROR(moved.status());
    if (*moved) return Turn::kMoved;
  }
}

absl::StatusOr<Pulled> Replica::Pull(ps::Pull request, const PullInto& into) {
  request.generation = generation_;
  request.sequence = sequence_;
  request.step = step_;
  auto pulled = client_.PullBatch(std::move(request), into);
  if (!pulled.ok()) return pulled;
  UpdateCounts(pulled->counts);
  wants_save_ = pulled->save != 0;
  if (client_.spec().training.has_backups()) step_ = pulled->step;
  return pulled;
}

absl::StatusOr<Pushed> Replica::Push(ps::Push request, const Gradients& gradients) {
  request.generation = generation_;
  request.sequence = sequence_;
  request.step = step_;
  auto pushed = client_.PushBatch(request, gradients);
  if (!pushed.ok()) return pushed;
  step_ = pushed->step;
  UpdateCounts(pushed->counts);
  if (pushed->stop != 0) return pushed;
  ++sequence_;
  // A later push without a batch repeats the position.
  position_ = std::move(request.position);
  return pushed;
}

absl::StatusOr<Replica::Ending> Replica::WaitForOthers() {
  if (std::exchange(moved_, false)) return Ending::kMoved;
  const bool together =
      client_.spec().training.synchronous && !client_.spec().training.has_backups();
  if (is_chief() && together) return Ending::kOver;
  const auto state =
      is_chief() ? client_.WaitForAll(generation_) : client_.WaitForState(generation_);
  absl::Status status = state.status();
  if (state.ok() && is_chief() && state->save != 0) {
    wants_save_ = true;
    return Ending::kContinue;
  }
  if (state.ok() && (is_chief() || state->phase == Phase::kOver)) {
    step_ = state->step;
    UpdateCounts(state->counts);
    return Ending::kOver;
  }
  if (state.ok())
    status = absl::AbortedError("another state was loaded into the parameter servers");
  if (absl::IsCancelled(status)) return Ending::kOver;
  if (!absl::IsAborted(status)) return status;
  const absl::StatusOr<bool> moved = Recover(status);
  if (absl::IsCancelled(moved.status())) return Ending::kOver;
  MUSTER_RETURN_IF_ERROR(moved.status());
  return *moved ? Ending::kMoved : Ending::kContinue;
}

absl::StatusOr<Place> Replica::Save(TableSave* tables) {
  wants_save_ = false;
  // If a batch was abandoned because this task must end, or if an earlier save failed, connect
  // again to save the servers' state. The next call reports it if that is another state.
  if (!client_.connected()) {
    MUSTER_ASSIGN_OR_RETURN(const bool moved, Recover(absl::OkStatus()));
    moved_ |= moved;
  }
  absl::StatusOr<Held> held =
      client_.SaveAll(generation_, sequence_, step_, spec_.memory, spec_.dynamic_table, tables);
  if (!held.ok()) return Annotate(held.status(), "saving from the parameter servers");
  step_ = held->step;
  UpdateCounts(held->counts);
  return Place{.step = held->step, .positions = std::move(held->positions), .counts = held->counts};
}

}  // namespace muster::ps
