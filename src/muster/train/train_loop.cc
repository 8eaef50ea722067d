#include "muster/train/train_loop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/engine/updater.h"
#include "muster/train/basic_hooks.h"
#include "muster/train/checkpoint_saver.h"
#include "muster/train/parts.h"
#include "muster/train/run_summary.h"
#include "muster/train/step_counter.h"
#include "muster/train/step_file.h"
#include "muster/train/summary_saver.h"

namespace muster::train {
namespace {

int64_t TotalSteps(const TrainSpec& spec, const BatchSource& input, int64_t first_step,
                   int steps_a_batch) {
  int64_t total = input.steps() * steps_a_batch;
  if (spec.parts > 0) {
    // What the others have left is as much.
    total += total > 0 ? first_step - input.first_step() : 0;
  } else if (spec.fresh_data || !input.has_positions()) {
    total += total > 0 ? first_step : 0;
  }
  if (spec.max_steps) total = total > 0 ? std::min(total, *spec.max_steps) : *spec.max_steps;
  return total;
}

// Passes gradients on and records how long that took.
class TracedSink : public engine::GradientSink {
 public:
  TracedSink(engine::GradientSink& sink, StepTrace* trace) : sink_(sink), trace_(trace) {}
  void Dense(int variable, std::span<const float> gradient) override {
    const TraceScope scope(trace_, "update");
    sink_.Dense(variable, gradient);
  }
  void Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) override {
    const TraceScope scope(trace_, "update");
    sink_.Rows(variable, rows, gradient);
  }
  bool WantsSquares(int variable) const override { return sink_.WantsSquares(variable); }
  bool WantsEntries(int variable) const override { return sink_.WantsEntries(variable); }
  void Statistic(int variable, std::span<const float> value) override {
    const TraceScope scope(trace_, "update");
    sink_.Statistic(variable, value);
  }

 private:
  engine::GradientSink& sink_;
  StepTrace* const trace_;
};

// A replica whose data has ended is in the epoch in which that was.
StepValues WithEpoch(StepValues values, int64_t epoch) {
  values.epoch = std::max<int64_t>(epoch, 0);
  return values;
}

}  // namespace

HookList TrainHooks(const TrainSpec& spec, const RunConfig& config, const EstimatorSpec& custom) {
  HookList hooks;
  if (spec.replicas == nullptr || spec.replicas->is_chief()) {
    hooks.push_back(NewCheckpointSaver(config, spec.saving_listeners));
    hooks.insert(hooks.end(), custom.training_chief_hooks.begin(),
                 custom.training_chief_hooks.end());
    hooks.push_back(NewStepCounter(config.log_step_count_steps));
    if (config.save_summary_steps > 0) hooks.push_back(NewRunSummary(spec, config));
    hooks.push_back(NewSummarySaver({config.save_summary_steps, config.histogram_steps}));
  }
  hooks.insert(hooks.end(), spec.hooks.begin(), spec.hooks.end());
  if (spec.max_steps) hooks.push_back(NewStopAtStep(*spec.max_steps));
  hooks.push_back(NewNanTensor(config.nan_loss_is_failure));
  if (!config.step_file.empty()) hooks.push_back(NewStepFile(config.step_file));
  hooks.insert(hooks.end(), custom.training_hooks.begin(), custom.training_hooks.end());
  return hooks;
}

TrainLoop::TrainLoop(Session& session, const TrainSpec& spec, HookList hooks)
    : session_(session),
      spec_(spec),
      hooks_(std::move(hooks)),
      sink_(session.model, session.variables, session.config.threads) {
  const optim::ClipSpec& clip = session.model.spec.clip_gradients;
  if (clip.kind != optim::ClipSpec::Kind::kNone) clip_.emplace(clip, sink_);
  if (session.model.applies) {
    apply_.emplace(*session.model.engine->updater(), session.variables, sink_);
  }
}

absl::StatusOr<TrainResult> TrainLoop::Run(const std::atomic<bool>& stop) {
  const absl::Status status = RunSteps(stop);
  session_.model.engine->Rest();
  if (!status.ok() && together_ != nullptr) together_->Fail(status);
  MUSTER_RETURN_IF_ERROR(status);
  MUSTER_RETURN_IF_ERROR(Finish());
  TrainResult result;
  result.interrupted = session_.interrupted;
  result.first_step = session_.first_step;
  result.step = session_.step;
  result.examples = state_.examples;
  result.seconds = session_.progress.seconds();
  result.loss = epoch_loss_.value();
  result.checkpoint = session_.checkpoint;
  result.stop_reason = session_.stop_reason;
  result.bad_records = bad_records_;
  result.records = AllRecords(session_);
  if (together_ != nullptr) result.changes = together_->changes();
  return result;
}

absl::Status TrainLoop::RunSteps(const std::atomic<bool>& stop) {
  const absl::Status opened = Open();
  // A replica that was started anew may come when all is done.
  if (together_ != nullptr && absl::IsCancelled(opened)) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(opened);
  while (true) {
    if (together_ == nullptr) {
      if (session_.stop_requested) break;
      session_.interrupted = stop.load(std::memory_order_relaxed);
      if (session_.interrupted) break;
    }
    MUSTER_ASSIGN_OR_RETURN(const bool more, RunStep(stop));
    if (more) continue;
    session_.model.engine->Rest();
    MUSTER_ASSIGN_OR_RETURN(const bool dismissed, WaitForOthers());
    if (dismissed) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TrainLoop::WaitForOthers() {
  using Ending = Strategy::Ending;
  if (together_ == nullptr) return true;
  MUSTER_ASSIGN_OR_RETURN(const Ending ending, together_->WaitForOthers());
  state_.examples += static_cast<uint64_t>(together_->TakeExamples());
  if (ending == Ending::kMoved) MUSTER_RETURN_IF_ERROR(GoOnElsewhere());
  return ending == Ending::kOver;
}

void TrainLoop::CountSteps() {
  state_.total_steps = TotalSteps(spec_, *input_, session_.step,
                                  together_ != nullptr ? together_->steps_a_batch() : 1);
}

absl::Status TrainLoop::GoOnElsewhere() {
  session_.model.engine->Rest();
  MUSTER_RETURN_IF_ERROR(OpenData());
  if (session_.parts > 0) CountSteps();
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->AfterCreateSession(session_));
  return absl::OkStatus();
}

// Where several replicas train, all know each other's positions.
absl::Status TrainLoop::FindPosition() {
  if (session_.positions.empty()) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(CheckReplicas(session_, together_ != nullptr ? together_->size() : 1));
  session_.position.reset();
  if (session_.parts > 0) return absl::OkStatus();
  const std::string& own =
      session_.positions[static_cast<size_t>(together_ != nullptr ? together_->rank() : 0)];
  if (own.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(session_.position, data::ParsePosition(own));
  return absl::OkStatus();
}

// What the checkpoint says of positions becomes what replicas say of them to each other.
void TrainLoop::SharePositions() {
  if (spec_.fresh_data) {
    session_.position.reset();
    session_.positions.clear();
  } else if (session_.positions.empty() && session_.position.has_value()) {
    session_.positions = {data::SerializePosition(*session_.position)};
  }
}

absl::Status TrainLoop::OpenData() {
  MUSTER_RETURN_IF_ERROR(FindPosition());
  input_.reset();
  const data::Position* const start = session_.position ? &*session_.position : nullptr;
  MUSTER_ASSIGN_OR_RETURN(
      input_, session_.parts > 0
                  ? OpenParts()
                  : OpenInput(session_.files, session_.model, spec_.input, spec_.input_fn, start));
  has_positions_ = input_->has_positions();
  if (!has_positions_) session_.position.reset();
  if (together_ == nullptr) session_.positions.clear();
  return absl::OkStatus();
}

// Those parts of the data that are this replica's now.
absl::StatusOr<std::unique_ptr<BatchSource>> TrainLoop::OpenParts() {
  std::vector<InputPart> parts;
  for (const int index : PartsOf(session_.parts, together_->rank(), together_->size())) {
    InputPart& part = parts.emplace_back();
    part.index = index;
    part.shard = {.index = index, .count = session_.parts, .by = spec_.input.source.shard.by};
    if (session_.positions.empty()) continue;
    const std::string& position = session_.positions[static_cast<size_t>(index)];
    if (position.empty()) continue;
    MUSTER_ASSIGN_OR_RETURN(part.start, data::ParsePosition(position));
  }
  return Input::OpenParts(session_.files, session_.model, spec_.input, parts);
}

absl::Status TrainLoop::Open() {
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->Begin(session_));
  SharePositions();
  session_.parts = spec_.replicas != nullptr ? spec_.parts : 0;
  if (session_.step == 0 && !session_.records) session_.records.emplace();
  if (spec_.replicas != nullptr) {
    MUSTER_ASSIGN_OR_RETURN(together_, spec_.replicas->NewStrategy(session_));
    if (spec_.replicas->all_have_weights()) {
      MUSTER_RETURN_IF_ERROR(CheckReducible(session_.model.spec));
    }
    MUSTER_RETURN_IF_ERROR(together_->Open());
  } else if (HasGrownTables(session_.model.spec)) {
    MUSTER_RETURN_IF_ERROR(OpenGrown());
  }
  session_.first_step = session_.step;
  MUSTER_RETURN_IF_ERROR(OpenData());
  state_.first_step = state_.step = session_.step;
  CountSteps();
  state_.epochs = input_->epochs();
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->AfterCreateSession(session_));
  return absl::OkStatus();
}

absl::Status TrainLoop::OpenGrown() {
  MUSTER_ASSIGN_OR_RETURN(
      grown_, GrownTables::ForTraining(session_.model, session_.variables, session_.config.seed));
  sink_.set_grown(grown_.get());
  session_.fetch_state = [this] {
    grown_->TakeImages();
    return absl::OkStatus();
  };
  return absl::OkStatus();
}

absl::StatusOr<const InputBatch*> TrainLoop::NextBatch() {
  const TraceScope scope(session_.trace, "input wait");
  MUSTER_ASSIGN_OR_RETURN(const InputBatch* const batch, input_->Next());
  session_.dropped_at_end = batch == nullptr ? input_->dropped_at_end() : 0;
  return batch;
}

absl::StatusOr<bool> TrainLoop::RunStep(const std::atomic<bool>& stop) {
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->BeforeRun(session_));
  std::optional<StepValues> values;
  if (together_ != nullptr) {
    MUSTER_ASSIGN_OR_RETURN(values, StepTogether(stop));
    if (!values) return false;
  } else {
    if (session_.stop_requested) return false;
    MUSTER_ASSIGN_OR_RETURN(const InputBatch* const batch, NextBatch());
    if (batch == nullptr) return false;
    MUSTER_ASSIGN_OR_RETURN(values, Step(*batch));
  }
  Report(*values);
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->AfterRun(session_, *values));
  return true;
}

absl::StatusOr<std::optional<StepValues>> TrainLoop::StepTogether(const std::atomic<bool>& stop) {
  using Outcome = Strategy::Outcome;
  using Stop = Strategy::Stop;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const InputBatch* const batch, NextBatch());
    Stop wish = session_.stop_requested ? Stop::kRequested : Stop::kNo;
    if (stop.load(std::memory_order_relaxed)) wish = Stop::kInterrupted;
    MUSTER_RETURN_IF_ERROR(BeginUpdate());
    session_.previous_step = session_.step;
    MUSTER_ASSIGN_OR_RETURN(const Strategy::Result result,
                            together_->Run(batch, wish, FirstSink()));
    switch (result.outcome) {
      case Outcome::kDone:
      case Outcome::kNotFinite:
        MUSTER_RETURN_IF_ERROR(FinishUpdate());
        if (batch != nullptr) bad_records_ = batch->position.bad_records;
        return batch != nullptr ? result.values : WithEpoch(result.values, loss_epoch_);
      case Outcome::kMoved:
        MUSTER_RETURN_IF_ERROR(GoOnElsewhere());
        break;
      case Outcome::kInterrupted:
        session_.interrupted = true;
        return std::nullopt;
      case Outcome::kOver:
        session_.interrupted = stop.load(std::memory_order_relaxed);
        return std::nullopt;
    }
  }
}

engine::GradientSink& TrainLoop::FirstSink() {
  if (apply_) return *apply_;
  if (clip_) return *clip_;
  return sink_;
}

absl::Status TrainLoop::BeginUpdate() {
  sink_.set_step(session_.step);
  if (apply_) apply_->set_step(session_.step);
  if (session_.model.rate == nullptr) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const float rate,
                          session_.model.engine->updater()->LearningRate(session_.step));
  session_.model.rate->Set(session_.step, rate);
  return absl::OkStatus();
}

absl::Status TrainLoop::FinishUpdate() {
  if (clip_) clip_->Finish();
  if (!apply_) return absl::OkStatus();
  const TraceScope scope(session_.trace, "update");
  return apply_->Finish();
}

absl::StatusOr<StepValues> TrainLoop::Step(const InputBatch& batch) {
  MUSTER_RETURN_IF_ERROR(BeginUpdate());
  engine::GradientSink* sink = &FirstSink();
  TracedSink traced(*sink, session_.trace);
  if (session_.trace != nullptr) sink = &traced;
  const TraceScope scope(session_.trace, "forward-backward");
  const features::FeatureBatch* features = &batch.features;
  std::span<const engine::VariableView> views = session_.variables.views();
  if (grown_ != nullptr) {
    MUSTER_ASSIGN_OR_RETURN(features, grown_->Take(batch.features));
    views = grown_->views();
  }
  MUSTER_ASSIGN_OR_RETURN(
      const engine::StepResult step,
      session_.model.engine->Step(
          views, *features, {.seed = session_.config.seed, .step = session_.step, .replica = 0},
          *sink));
  MUSTER_RETURN_IF_ERROR(FinishUpdate());
  const bool finite = std::isfinite(step.loss);
  if (finite) ++session_.step;
  Count(batch.features.rows, finite, batch.dropped, &session_.records);
  if (has_positions_) session_.position = batch.position;
  bad_records_ = batch.position.bad_records;
  return StepValues{step.loss, step.data_loss, batch.features.rows, batch.epoch};
}

void TrainLoop::Report(const StepValues& values) {
  const double rows = values.rows;
  if (values.epoch != loss_epoch_) {
    epoch_loss_ = Mean();
    loss_epoch_ = values.epoch;
  }
  report_loss_.Add(values.loss, rows);
  epoch_loss_.Add(values.loss, rows);
  state_.examples += static_cast<uint64_t>(values.rows);
  state_.step = session_.step;
  state_.epoch = values.epoch + 1;
  state_.loss = report_loss_.value();
  state_.has_loss = true;
  // The mean that is shown forgets slowly: a thousand batches.
  if (report_loss_.rows > 1000.0 * rows) report_loss_ = Mean();
  if (session_.progress.due()) ReportReplicas();
  session_.progress.Update(state_);
}

void TrainLoop::ReportReplicas() {
  const ReplicaRates* const rates = together_ != nullptr ? together_->rates() : nullptr;
  if (rates == nullptr) return;
  state_.replicas = rates->rates();
  state_.straggler = rates->straggler();
}

absl::Status TrainLoop::Finish() {
  if (session_.step > session_.first_step) {
    state_.loss = epoch_loss_.value();
    ReportReplicas();
    session_.progress.Update(state_, /*last=*/true);
  }
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->End(session_));
  if (spec_.replicas != nullptr && spec_.replicas->is_chief()) {
    MUSTER_RETURN_IF_ERROR(spec_.replicas->Leave());
  }
  return session_.events != nullptr ? session_.events->Close() : absl::OkStatus();
}

}  // namespace muster::train
