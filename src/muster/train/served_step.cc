#include "muster/train/served_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/train/checkpoint_saver.h"
#include "muster/train/served_cluster.h"

namespace muster::train {

void KeepSink::Begin(double share) {
  share_ = share;
  for (Kept& kept : kept_) {
    kept.rows.clear();
    kept.values.clear();
  }
}

void KeepSink::Dense(int variable, std::span<const float> gradient) {
  kept_[static_cast<size_t>(variable)].values.assign(gradient.begin(), gradient.end());
}

void KeepSink::Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) {
  kept_[static_cast<size_t>(variable)].rows.assign(rows.begin(), rows.end());
  Dense(variable, gradient);
}

void KeepSink::Statistic(int variable, std::span<const float> value) {
  Dense(variable, value);
  for (float& each : kept_[static_cast<size_t>(variable)].values) {
    each = static_cast<float>(double{each} * share_);
  }
}

absl::StatusOr<std::unique_ptr<ServedStep>> ServedStep::Create(Session& session,
                                                               ServedOptions options,
                                                               const net::Token& key) {
  MUSTER_ASSIGN_OR_RETURN(ps::Variables variables,
                          ServedVariables(session.model, options.client.synchronous));
  MUSTER_ASSIGN_OR_RETURN(TableBlocks blocks, TableBlocks::Create(*session.model.engine));
  std::unique_ptr<ServedStep> step(
      new ServedStep(session, std::move(options), std::move(blocks), std::move(variables)));
  MUSTER_ASSIGN_OR_RETURN(step->client_,
                          ps::Client::Create(step->spec_.client, key, step->variables_));
  return step;
}

ServedStep::ServedStep(Session& session, ServedOptions options, TableBlocks blocks,
                       ps::Variables variables)
    : session_(session),
      spec_(std::move(options)),
      variables_(std::move(variables)),
      blocks_(std::move(blocks)),
      sink_(variables_.size()),
      memory_(variables_.size()) {
  for (size_t i = 0; i < variables_.size(); ++i) {
    const ps::Variable& variable = variables_[i];
    engine::VariableView& view = views_.emplace_back();
    view.cols = variable.cols;
    if (variable.is_table()) continue;
    view.rows = variable.rows;
    view.data = memory_[i].Reserve(static_cast<size_t>(variable.elements()));
  }
  const optim::ClipSpec& clip = session.model.spec.clip_gradients;
  if (!synchronous() && clip.kind != optim::ClipSpec::Kind::kNone) {
    clip_ = std::make_unique<ClipSink>(clip, sink_);
  }
  if (is_chief()) session.fetch_state = [this] { return FetchState(); };
}

absl::Status ServedStep::Open() {
  if (is_chief()) MUSTER_RETURN_IF_ERROR(CheckReplicas(session_, size()));
  return Recover(absl::OkStatus()).status();
}

absl::StatusOr<Strategy::Result> ServedStep::Run(const InputBatch* batch, Stop stop,
                                                 engine::GradientSink&) {
  while (true) {
    absl::StatusOr<Result> result = TryRun(batch, stop);
    if (absl::IsCancelled(result.status())) return Result{.outcome = Outcome::kOver};
    if (!absl::IsAborted(result.status())) return result;
    const absl::StatusOr<bool> moved = Recover(result.status());
    if (absl::IsCancelled(moved.status())) return Result{.outcome = Outcome::kOver};
    MUSTER_RETURN_IF_ERROR(moved.status());
    if (*moved) return Result{.outcome = Outcome::kMoved};
  }
}

absl::StatusOr<Strategy::Result> ServedStep::TryRun(const InputBatch* batch, Stop stop) {
  const uint32_t rows = batch != nullptr ? static_cast<uint32_t>(batch->features.rows) : 0;
  Result over = {.outcome = stop == Stop::kInterrupted ? Outcome::kInterrupted : Outcome::kOver};
  if (!synchronous() && (batch == nullptr || stop != Stop::kNo)) {
    MUSTER_RETURN_IF_ERROR(client_->Finish(generation_));
    return over;
  }
  MUSTER_RETURN_IF_ERROR(
      blocks_.Take(batch != nullptr ? batch->features : features::FeatureBatch()));
  MUSTER_ASSIGN_OR_RETURN(const ps::Pulled pulled, PullFor(rows, stop));
  if (synchronous() && (pulled.stop != 0 || pulled.rows == 0)) {
    const bool signal = pulled.stop == static_cast<uint32_t>(Stop::kInterrupted);
    return Result{.outcome = signal ? Outcome::kInterrupted : Outcome::kOver};
  }
  engine::StepResult step;
  if (batch != nullptr) {
    MUSTER_ASSIGN_OR_RETURN(step, Compute(*batch, pulled));
  }
  MUSTER_ASSIGN_OR_RETURN(const ps::Pushed pushed, PushOf(batch, step));
  ++sequence_;
  session_.step = pushed.step;
  const bool finite = pushed.finite != 0 && std::isfinite(step.loss);
  Result result = {.outcome = finite ? Outcome::kDone : Outcome::kNotFinite};
  result.values = {.loss = step.loss,
                   .data_loss = step.data_loss,
                   .rows = static_cast<int>(synchronous() ? pulled.rows : rows),
                   .epoch = batch != nullptr ? batch->epoch : 0};
  if (synchronous()) {
    result.values.loss = double{pushed.loss};
    result.values.data_loss = double{pushed.data_loss};
  }
  return result;
}

absl::StatusOr<ps::Pulled> ServedStep::PullFor(uint32_t rows, Stop stop) {
  std::vector<ps::Block> tables;
  std::vector<float*> dense(variables_.size()), blocks;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!variables_[i].is_table()) dense[i] = views_[i].data;
  }
  for (const int table : blocks_.tables()) {
    const auto i = static_cast<size_t>(table);
    const std::span<const int32_t> touched = blocks_.rows(table);
    tables.push_back({.variable = table, .rows = touched});
    views_[i].rows = static_cast<int64_t>(touched.size());
    views_[i].data = memory_[i].Reserve(touched.size() * static_cast<size_t>(views_[i].cols));
    blocks.push_back(views_[i].data);
  }
  return client_->PullBatch({.generation = generation_,
                             .sequence = sequence_,
                             .step = session_.step,
                             .rows = rows,
                             .stop = static_cast<uint32_t>(stop)},
                            {.tables = tables, .dense = dense, .blocks = blocks});
}

absl::StatusOr<engine::StepResult> ServedStep::Compute(const InputBatch& batch,
                                                       const ps::Pulled& pulled) {
  const double own = batch.features.rows;
  sink_.Begin(synchronous() ? own / pulled.rows : 1);
  engine::GradientSink& sink = clip_ ? static_cast<engine::GradientSink&>(*clip_) : sink_;
  auto step = session_.model.engine->Step(
      views_, blocks_.batch(),
      {.seed = session_.config.seed,
       .step = synchronous() ? session_.step : pulled.step,
       .replica = static_cast<uint32_t>(rank()),
       .denominator = synchronous() ? static_cast<double>(pulled.rows) : 0},
      sink);
  if (clip_) clip_->Finish();
  return step;
}

absl::StatusOr<ps::Pushed> ServedStep::PushOf(const InputBatch* batch,
                                              const engine::StepResult& step) {
  ps::Push push = {.generation = generation_,
                   .sequence = sequence_,
                   .step = session_.step,
                   .finite = static_cast<uint32_t>(std::isfinite(step.loss)),
                   .loss = static_cast<float>(step.loss),
                   .data_loss = static_cast<float>(step.data_loss)};
  if (batch != nullptr) {
    push.rows = static_cast<uint32_t>(batch->features.rows);
    push.position = data::SerializePosition(batch->position);
  } else if (std::cmp_less(rank(), session_.positions.size())) {
    push.position = session_.positions[static_cast<size_t>(rank())];
  }
  const bool none = batch == nullptr || push.finite == 0;
  std::vector<std::span<const float>> dense, values;
  std::vector<std::vector<int32_t>> rows;
  std::vector<ps::Block> tables;
  for (size_t i = 0; i < variables_.size(); ++i) {
    const KeepSink::Kept& kept = sink_.kept(static_cast<int>(i));
    if (!variables_[i].is_table()) {
      dense.push_back(none ? std::span<const float>() : kept.values);
      continue;
    }
    dense.emplace_back();
    // From the block's numbers to the table's.
    const std::span<const int32_t> touched = blocks_.rows(static_cast<int>(i));
    std::vector<int32_t>& whole = rows.emplace_back();
    if (!none) {
      for (const int32_t row : kept.rows) whole.push_back(touched[static_cast<size_t>(row)]);
    }
    values.push_back(none ? std::span<const float>() : kept.values);
    tables.push_back({.variable = static_cast<int>(i)});
  }
  for (size_t i = 0; i < tables.size(); ++i) tables[i].rows = rows[i];
  const auto pushed =
      client_->PushBatch(push, {.dense = dense, .tables = tables, .values = values});
  // Where it stands, should it have to push again without a batch.
  if (pushed.ok()) {
    session_.positions.resize(static_cast<size_t>(size()));
    session_.positions[static_cast<size_t>(rank())] = push.position;
  }
  return pushed;
}

absl::StatusOr<Strategy::Ending> ServedStep::WaitForOthers() {
  absl::Status status;
  if (is_chief()) {
    if (synchronous() || session_.interrupted) return Ending::kOver;
    status = client_->WaitForAll(generation_);
    if (status.ok()) return Ending::kOver;
  } else {
    const auto state = client_->WaitForState(generation_);
    if (state.ok() && state->phase == ps::Phase::kOver) return Ending::kOver;
    status = state.ok() ? absl::AbortedError("the parameter servers were given another state")
                        : state.status();
  }
  if (absl::IsCancelled(status)) return Ending::kOver;
  if (!absl::IsAborted(status)) return status;
  const absl::StatusOr<bool> moved = Recover(status);
  if (absl::IsCancelled(moved.status())) return Ending::kOver;
  MUSTER_RETURN_IF_ERROR(moved.status());
  return *moved ? Ending::kMoved : Ending::kGoOn;
}

absl::StatusOr<bool> ServedStep::Recover(const absl::Status& why) {
  if (!why.ok()) Note(StrCat(why.message(), "; waiting for the parameter servers"));
  while (true) {
    absl::StatusOr<bool> moved = TryRecover();
    if (absl::IsAborted(moved.status())) continue;
    if (moved.ok() && opened_ && !why.ok()) Note(StrCat("going on at step ", session_.step));
    opened_ = opened_ || moved.ok();
    return moved;
  }
}

absl::StatusOr<bool> ServedStep::TryRecover() {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<ps::State> states, client_->Connect());
  const ps::State& lead = states.front();
  int lost = -1;
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].phase == ps::Phase::kOver) return absl::CancelledError("training is over");
    if (states[i].phase != ps::Phase::kReady || states[i].generation != lead.generation) {
      lost = static_cast<int>(i);
    }
  }
  if (lost < 0) return TakeState(lead);
  if (is_chief()) {
    MUSTER_RETURN_IF_ERROR(LoadServers(states));
  } else {
    if (lead.phase == ps::Phase::kReady) {
      MUSTER_RETURN_IF_ERROR(client_->TellBroken(
          lead.generation, StrCat("ps-", lost, " was started again and has no state")));
    }
    MUSTER_RETURN_IF_ERROR(client_->WaitForState(lead.generation - 1).status());
  }
  return absl::AbortedError("there is a state now");
}

bool ServedStep::TakeState(const ps::State& lead) {
  const bool moved = opened_ && (lead.generation != generation_ || lead.sequence != sequence_);
  if (moved) {
    // It may have been asked to stop behind the step to which all go back.
    session_.stop_requested = false;
    session_.stop_reason.clear();
  }
  generation_ = lead.generation;
  sequence_ = lead.sequence;
  session_.step = lead.step;
  session_.positions.assign(static_cast<size_t>(size()), "");
  session_.positions[static_cast<size_t>(rank())] = lead.position;
  return moved;
}

absl::Status ServedStep::LoadServers(const std::vector<ps::State>& states) {
  int64_t generation = 0;
  for (const ps::State& state : states) generation = std::max(generation, state.generation);
  if (opened_) MUSTER_RETURN_IF_ERROR(RestoreCheckpoint());
  return client_->LoadAll(generation + 1, session_.step, session_.positions, MemoryOf());
}

absl::Status ServedStep::RestoreCheckpoint() {
  const int64_t lost = session_.step;
  session_.position.reset();
  session_.positions.clear();
  session_.saved_step = -1;
  for (size_t i = 0; i < variables_.size(); ++i) {
    session_.variables.BeforeChange(static_cast<int>(i));
  }
  MUSTER_RETURN_IF_ERROR(RestoreSession(session_));
  if (session_.saved_step < 0) {
    return absl::UnavailableError(
        StrCat("a parameter server was lost, and ", session_.config.model_dir,
               " has no checkpoint to begin again from: start the training anew"));
  }
  if (session_.positions.empty() && session_.position.has_value()) {
    session_.positions = {data::SerializePosition(*session_.position)};
  }
  Note(StrCat("a parameter server lost its state: all go back from step ", lost,
              " to the checkpoint of step ", session_.step, ", ", lost - session_.step,
              " steps are done again"));
  return absl::OkStatus();
}

ps::Memory ServedStep::MemoryOf() const {
  const Variables& variables = session_.variables;
  return [&variables](int variable, int slot) {
    return slot < 0 ? variables.views()[static_cast<size_t>(variable)].data
                    : variables.slots(variable)[static_cast<size_t>(slot)];
  };
}

absl::Status ServedStep::FetchState() {
  for (size_t i = 0; i < variables_.size(); ++i) {
    session_.variables.BeforeChange(static_cast<int>(i));
  }
  auto held = client_->SaveAll(generation_, session_.step, MemoryOf());
  if (absl::IsAborted(held.status())) {
    // Half of a state is none. Whoever starts this task again lets it find the servers' state.
    return absl::UnavailableError(
        StrCat("saving from the parameter servers: ", held.status().message()));
  }
  MUSTER_RETURN_IF_ERROR(held.status());
  session_.step = held->step;
  session_.positions = std::move(held->positions);
  return absl::OkStatus();
}

}  // namespace muster::train
