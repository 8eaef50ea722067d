#include "muster/train/parameter_server/ps_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/train/parameter_server/ps_variables.h"

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

absl::StatusOr<std::unique_ptr<PsStep>> PsStep::Create(Session& session, ps::ClientSpec spec,
                                                       const net::Token& key) {
  MUSTER_ASSIGN_OR_RETURN(
      ps::Variables variables,
      PsVariables(session.model, spec.training.synchronous, session.config.seed));
  spec.clips_by_norm = spec.training.synchronous && session.model.spec.clip_gradients.by_norm();
  MUSTER_ASSIGN_OR_RETURN(TableBlocks blocks, TableBlocks::Create(*session.model.engine));
  std::unique_ptr<PsStep> step(
      new PsStep(session, std::move(spec), std::move(blocks), std::move(variables)));
  MUSTER_ASSIGN_OR_RETURN(step->client_, ps::Client::Create(step->spec_, key, step->variables_));
  step->Begin();
  return step;
}

PsStep::PsStep(Session& session, ps::ClientSpec spec, TableBlocks blocks, ps::Variables variables)
    : session_(session),
      spec_(std::move(spec)),
      variables_(std::move(variables)),
      blocks_(std::move(blocks)),
      sink_(variables_),
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
}

void PsStep::Begin() {
  ps::ReplicaSpec spec;
  spec.note = spec_.note;
  if (is_chief()) {
    spec.memory = GetMemory();
    spec.dynamic_table = [this](int variable) {
      return session_.variables.dynamic_tables(variable);
    };
    spec.give = [this](bool again) { return GiveState(again); };
  }
  replica_ = std::make_unique<ps::Replica>(*client_, std::move(spec));
}

// Sets the session to this replica's step, position and counts in the servers' state.
void PsStep::UpdatePlace() {
  session_.step = replica_->step();
  session_.data.positions.assign(static_cast<size_t>(size()), "");
  session_.data.positions[static_cast<size_t>(rank())] = replica_->position();
  UpdateCounts();
}

void PsStep::UpdateCounts() {
  const ps::Counts& counts = replica_->counts();
  session_.data.records.reset();
  if (counts.known != 0) {
    session_.data.records = {
        .trained = counts.trained, .dropped = counts.dropped, .repeated = counts.repeated};
  }
  session_.data.dropped_at_end = counts.left_at_end;
  session_.data.all_bad_records = static_cast<uint64_t>(counts.bad_records);
  session_.checkpoint.requested |= is_chief() && replica_->wants_save();
}

int64_t PsStep::ConsumeExamples() {
  // Replicas learn of lost work late, so that the count may go down.
  return std::max<int64_t>(0, replica_->work() - std::exchange(examples_, replica_->work()));
}

void PsStep::Move() {
  // A hook may have asked to stop after the step to which all replicas go back.
  session_.ending.requested = false;
  session_.ending.reason.clear();
  UpdatePlace();
}

absl::Status PsStep::Open() {
  if (is_chief()) MUSTER_RETURN_IF_ERROR(CheckReplicas(session_, size()));
  MUSTER_RETURN_IF_ERROR(replica_->Recover(absl::OkStatus()).status());
  if (is_chief() && !servers_save_) {  // the servers had a state already
    MUSTER_RETURN_IF_ERROR(LookForServersInFolder());
    if (!servers_save_) MUSTER_RETURN_IF_ERROR(session_.variables.AllocateRest());
  }
  UpdatePlace();
  // Other replicas may already have continued from the state that this one has loaded.
  if (examples_ < 0) examples_ = replica_->work();
  return absl::OkStatus();
}

absl::StatusOr<Strategy::Result> PsStep::Run(const InputBatch* batch, Stop stop) {
  using Turn = ps::Replica::Turn;
  Result result;
  session_.previous_step = session_.step;
  left_at_end_ = session_.data.dropped_at_end;
  MUSTER_ASSIGN_OR_RETURN(const Turn turn, replica_->Try([&]() -> absl::Status {
    UpdatePlace();
    MUSTER_ASSIGN_OR_RETURN(result, TryRun(batch, stop));
    return absl::OkStatus();
  }));
  if (turn == Turn::kOver) return Result{.outcome = Outcome::kOver};
  if (turn == Turn::kDone) return result;
  Move();
  return Result{.outcome = Outcome::kMoved};
}

absl::StatusOr<Strategy::Result> PsStep::TryRun(const InputBatch* batch, Stop stop) {
  const uint32_t rows = batch != nullptr ? static_cast<uint32_t>(batch->features.rows) : 0;
  // Synchronous: a request to stop is sent with a pull, so that all replicas stop.
  const bool pulls = batch != nullptr ? synchronous() || stop == Stop::kNo
                                      : in_lock_step() || (synchronous() && stop != Stop::kNo);
  if (!pulls) {
    MUSTER_RETURN_IF_ERROR(replica_->Finish(left_at_end_, bad_records()));
    return EndBy(static_cast<uint32_t>(stop));
  }
  MUSTER_RETURN_IF_ERROR(PullBlocks(batch));
  MUSTER_ASSIGN_OR_RETURN(const ps::Pulled pulled, PullFor(rows, stop));
  if (pulled.stop != 0 || (in_lock_step() && pulled.rows == 0)) return EndBy(pulled.stop);
  engine::StepResult step;
  if (batch != nullptr) {
    MUSTER_ASSIGN_OR_RETURN(step, Compute(*batch, pulled));
  }
  MUSTER_ASSIGN_OR_RETURN(const ps::Pushed pushed, MakePush(batch, step));
  UpdatePlace();
  if (pushed.stop != 0) return EndBy(pushed.stop);
  const bool finite = pushed.finite != 0 && std::isfinite(step.loss);
  Result result = {.outcome = finite ? Outcome::kDone : Outcome::kNotFinite};
  result.values = GetValues(batch, step, pulled, pushed);
  return result;
}

absl::Status PsStep::PullBlocks(const InputBatch* batch) {
  if (batch == nullptr) return blocks_.Renumber(features::FeatureBatch());
  engine::Engine& engine = *session_.model.engine;
  if (!engine.finds_ids()) return blocks_.Renumber(batch->features);
  features::FeatureBatch found = batch->features;
  MUSTER_RETURN_IF_ERROR(engine.FindIds(&found));
  return blocks_.Renumber(found);
}

Strategy::Result PsStep::EndBy(uint32_t stop) {
  UpdateCounts();
  const bool signal = stop == static_cast<uint32_t>(Stop::kInterrupted);
  return {.outcome = signal ? Outcome::kInterrupted : Outcome::kOver};
}

StepValues PsStep::GetValues(const InputBatch* batch, const engine::StepResult& step,
                             const ps::Pulled& pulled, const ps::Pushed& pushed) {
  StepValues values = {.loss = step.loss,
                       .data_loss = step.data_loss,
                       .rows = static_cast<int>(ConsumeExamples()),
                       .epoch = batch != nullptr ? batch->epoch : 0,
                       .metric_states = step.metric_states};
  if (synchronous()) {
    values.loss = double{pushed.loss};
    values.data_loss = double{pushed.data_loss};
  }
  if (in_lock_step()) {
    values.rows = static_cast<int>(pulled.rows);
  } else if (batch != nullptr && (!synchronous() || pushed.finite == 0)) {
    // The count of examples lacks this batch if its loss is not finite, and may lack it if this
    // replica has just connected: at least the rows of this batch are reported.
    values.rows = std::max(values.rows, batch->features.rows);
  }
  return values;
}

absl::StatusOr<ps::Pulled> PsStep::PullFor(uint32_t rows, Stop stop) {
  std::vector<ps::Block> tables;
  std::vector<float*> dense(variables_.size()), blocks;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!variables_[i].is_table()) dense[i] = views_[i].data;
  }
  for (const int table : blocks_.tables()) {
    const auto i = static_cast<size_t>(table);
    tables.push_back({.variable = table, .rows = blocks_.rows(table), .keys = blocks_.keys(table)});
    const size_t touched = tables.back().rows.size() + tables.back().keys.size();
    views_[i].rows = static_cast<int64_t>(touched);
    views_[i].data = memory_[i].Reserve(touched * static_cast<size_t>(views_[i].cols));
    blocks.push_back(views_[i].data);
  }
  return replica_->Pull({.rows = rows,
                         .stop = static_cast<uint32_t>(stop),
                         .left_at_end = left_at_end_,
                         .bad_records = bad_records()},
                        {.tables = tables, .dense = dense, .blocks = blocks});
}

absl::StatusOr<engine::StepResult> PsStep::Compute(const InputBatch& batch,
                                                   const ps::Pulled& pulled) {
  const double own = batch.features.rows;
  sink_.Begin(in_lock_step() ? own / pulled.rows : 1);
  engine::GradientSink& sink = clip_ ? static_cast<engine::GradientSink&>(*clip_) : sink_;
  auto step = session_.model.engine->Step(
      views_, blocks_.batch(),
      {.seed = session_.config.seed,
       .step = in_lock_step() ? session_.step : pulled.step,
       .replica = static_cast<uint32_t>(rank()),
       .denominator = in_lock_step() ? static_cast<double>(pulled.rows) : 0},
      sink);
  if (clip_) clip_->Finish();
  return step;
}

absl::StatusOr<ps::Pushed> PsStep::MakePush(const InputBatch* batch,
                                            const engine::StepResult& step) {
  ps::Push push = {.finite = static_cast<uint32_t>(std::isfinite(step.loss)),
                   .loss = static_cast<float>(step.loss),
                   .data_loss = static_cast<float>(step.data_loss)};
  if (batch != nullptr) {
    push.rows = static_cast<uint32_t>(batch->features.rows);
    push.position = data::SerializePosition(batch->position);
    push.dropped = batch->dropped;
  } else {
    push.position = replica_->position();
  }
  const bool none = batch == nullptr || push.finite == 0;
  std::vector<std::span<const float>> dense, values;
  std::vector<std::vector<int32_t>> rows;
  std::vector<std::vector<int64_t>> keys;
  std::vector<ps::Block> tables;
  for (size_t i = 0; i < variables_.size(); ++i) {
    const KeepSink::Kept& kept = sink_.kept(static_cast<int>(i));
    if (!variables_[i].is_table()) {
      dense.push_back(none ? std::span<const float>() : kept.values);
      continue;
    }
    dense.emplace_back();
    // The kept rows are indexes in the block; these are the rows and keys of the table.
    const std::span<const int32_t> touched = blocks_.rows(static_cast<int>(i));
    const std::span<const int64_t> touched_keys = blocks_.keys(static_cast<int>(i));
    std::vector<int32_t>& whole = rows.emplace_back();
    std::vector<int64_t>& whole_keys = keys.emplace_back();
    for (const int32_t row : none ? std::span<const int32_t>() : kept.rows) {
      if (variables_[i].grows()) {
        whole_keys.push_back(touched_keys[static_cast<size_t>(row)]);
      } else {
        whole.push_back(touched[static_cast<size_t>(row)]);
      }
    }
    values.push_back(none ? std::span<const float>() : kept.values);
    tables.push_back({.variable = static_cast<int>(i)});
  }
  for (size_t i = 0; i < tables.size(); ++i) {
    tables[i].rows = rows[i];
    tables[i].keys = keys[i];
  }
  return replica_->Push(push, {.dense = dense, .tables = tables, .values = values});
}

absl::StatusOr<Strategy::Ending> PsStep::WaitForOthers() {
  using ReplicaEnding = ps::Replica::Ending;
  // An interrupted chief does not wait: it saves the present state.
  if (is_chief() && session_.ending.interrupted) return Ending::kOver;
  MUSTER_ASSIGN_OR_RETURN(const ReplicaEnding ending, replica_->WaitForOthers());
  if (ending != ReplicaEnding::kMoved) UpdatePlace();
  if (ending == ReplicaEnding::kOver) return Ending::kOver;
  if (ending == ReplicaEnding::kContinue) return Ending::kContinue;
  Move();
  return Ending::kMoved;
}

}  // namespace muster::train
