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
  step->Begin();
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
}

void ServedStep::Begin() {
  ps::ReplicaSpec spec;
  spec.note = spec_.note;
  if (is_chief()) {
    spec.memory = MemoryOf();
    spec.give = [this](bool again) -> absl::StatusOr<ps::Place> {
      if (again) MUSTER_RETURN_IF_ERROR(RestoreCheckpoint());
      return ps::Place{.step = session_.step, .positions = session_.positions};
    };
    session_.fetch_state = [this] { return FetchState(); };
  }
  replica_ = std::make_unique<ps::Replica>(*client_, std::move(spec));
}

// Where the servers' state has this replica.
void ServedStep::TakePlace() {
  session_.step = replica_->step();
  session_.positions.assign(static_cast<size_t>(size()), "");
  session_.positions[static_cast<size_t>(rank())] = replica_->position();
}

void ServedStep::Move() {
  // It may have been asked to stop behind the step to which all go back.
  session_.stop_requested = false;
  session_.stop_reason.clear();
  TakePlace();
}

absl::Status ServedStep::Open() {
  if (is_chief()) MUSTER_RETURN_IF_ERROR(CheckReplicas(session_, size()));
  MUSTER_RETURN_IF_ERROR(replica_->Recover(absl::OkStatus()).status());
  TakePlace();
  return absl::OkStatus();
}

absl::StatusOr<Strategy::Result> ServedStep::Run(const InputBatch* batch, Stop stop,
                                                 engine::GradientSink&) {
  using Turn = ps::Replica::Turn;
  Result result;
  MUSTER_ASSIGN_OR_RETURN(const Turn turn, replica_->Try([&]() -> absl::Status {
    TakePlace();
    MUSTER_ASSIGN_OR_RETURN(result, TryRun(batch, stop));
    return absl::OkStatus();
  }));
  if (turn == Turn::kOver) return Result{.outcome = Outcome::kOver};
  if (turn == Turn::kDone) return result;
  Move();
  return Result{.outcome = Outcome::kMoved};
}

absl::StatusOr<Strategy::Result> ServedStep::TryRun(const InputBatch* batch, Stop stop) {
  const uint32_t rows = batch != nullptr ? static_cast<uint32_t>(batch->features.rows) : 0;
  Result over = {.outcome = stop == Stop::kInterrupted ? Outcome::kInterrupted : Outcome::kOver};
  if (!synchronous() && (batch == nullptr || stop != Stop::kNo)) {
    MUSTER_RETURN_IF_ERROR(replica_->Finish());
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
  TakePlace();
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
  return replica_->Pull({.rows = rows, .stop = static_cast<uint32_t>(stop)},
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
  ps::Push push = {.finite = static_cast<uint32_t>(std::isfinite(step.loss)),
                   .loss = static_cast<float>(step.loss),
                   .data_loss = static_cast<float>(step.data_loss)};
  if (batch != nullptr) {
    push.rows = static_cast<uint32_t>(batch->features.rows);
    push.position = data::SerializePosition(batch->position);
  } else {
    push.position = replica_->position();
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
  return replica_->Push(push, {.dense = dense, .tables = tables, .values = values});
}

absl::StatusOr<Strategy::Ending> ServedStep::WaitForOthers() {
  using ReplicaEnding = ps::Replica::Ending;
  // Interrupted it saves what there is.
  if (is_chief() && session_.interrupted) return Ending::kOver;
  MUSTER_ASSIGN_OR_RETURN(const ReplicaEnding ending, replica_->WaitForOthers());
  if (ending == ReplicaEnding::kOver) return Ending::kOver;
  if (ending == ReplicaEnding::kGoOn) {
    TakePlace();
    return Ending::kGoOn;
  }
  Move();
  return Ending::kMoved;
}

absl::Status ServedStep::RestoreCheckpoint() {
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
  MUSTER_ASSIGN_OR_RETURN(ps::Place place, replica_->Save());
  session_.step = place.step;
  session_.positions = std::move(place.positions);
  return absl::OkStatus();
}

}  // namespace muster::train
