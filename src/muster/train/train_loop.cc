#include "muster/train/train_loop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/train/basic_hooks.h"
#include "muster/train/checkpoint_saver.h"
#include "muster/train/run_summary.h"
#include "muster/train/step_counter.h"
#include "muster/train/summary_saver.h"

namespace muster::train {
namespace {

int64_t TotalSteps(const TrainSpec& spec, const BatchSource& input, int64_t first_step) {
  int64_t total = input.steps();
  if (spec.fresh_data || !input.has_positions()) total += total > 0 ? first_step : 0;
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
  void Statistic(int variable, std::span<const float> value) override {
    const TraceScope scope(trace_, "update");
    sink_.Statistic(variable, value);
  }

 private:
  engine::GradientSink& sink_;
  StepTrace* const trace_;
};

}  // namespace

HookList TrainHooks(const TrainSpec& spec, const RunConfig& config, const EstimatorSpec& custom) {
  HookList hooks;
  hooks.push_back(NewCheckpointSaver(config, spec.saving_listeners));
  hooks.insert(hooks.end(), custom.training_chief_hooks.begin(), custom.training_chief_hooks.end());
  hooks.push_back(NewStepCounter(config.log_step_count_steps));
  if (config.save_summary_steps > 0) hooks.push_back(NewRunSummary(spec, config));
  hooks.push_back(NewSummarySaver({config.save_summary_steps, config.histogram_steps}));
  hooks.insert(hooks.end(), spec.hooks.begin(), spec.hooks.end());
  if (spec.max_steps) hooks.push_back(NewStopAtStep(*spec.max_steps));
  hooks.push_back(NewNanTensor(config.nan_loss_is_failure));
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
}

absl::StatusOr<TrainResult> TrainLoop::Run(const std::atomic<bool>& stop) {
  TrainResult result;
  MUSTER_RETURN_IF_ERROR(Open());
  while (!session_.stop_requested) {
    if (stop.load(std::memory_order_relaxed)) {
      result.interrupted = session_.interrupted = true;
      break;
    }
    MUSTER_ASSIGN_OR_RETURN(const bool more, RunStep());
    if (!more) break;
  }
  MUSTER_RETURN_IF_ERROR(Finish());
  result.first_step = session_.first_step;
  result.step = session_.step;
  result.examples = state_.examples;
  result.seconds = session_.progress.seconds();
  result.loss = epoch_loss_.value();
  result.checkpoint = session_.checkpoint;
  result.stop_reason = session_.stop_reason;
  result.bad_records = bad_records_;
  return result;
}

absl::Status TrainLoop::Open() {
  session_.first_step = session_.step;
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->Begin(session_));
  const bool resume = session_.position.has_value() && !spec_.fresh_data;
  MUSTER_ASSIGN_OR_RETURN(input_,
                          OpenInput(session_.files, session_.model, spec_.input, spec_.input_fn,
                                    resume ? &*session_.position : nullptr));
  has_positions_ = input_->has_positions();
  if (!has_positions_) session_.position.reset();
  state_.first_step = state_.step = session_.step;
  state_.total_steps = TotalSteps(spec_, *input_, session_.step);
  state_.epochs = input_->epochs();
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->AfterCreateSession(session_));
  return absl::OkStatus();
}

absl::StatusOr<bool> TrainLoop::RunStep() {
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->BeforeRun(session_));
  if (session_.stop_requested) return false;
  const InputBatch* batch;
  {
    const TraceScope scope(session_.trace, "input wait");
    MUSTER_ASSIGN_OR_RETURN(batch, input_->Next());
  }
  if (batch == nullptr) return false;
  MUSTER_ASSIGN_OR_RETURN(const StepValues values, Step(*batch));
  Report(values);
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->AfterRun(session_, values));
  return true;
}

absl::StatusOr<StepValues> TrainLoop::Step(const InputBatch& batch) {
  sink_.set_step(session_.step);
  engine::GradientSink* sink = &sink_;
  if (clip_) sink = &*clip_;
  TracedSink traced(*sink, session_.trace);
  if (session_.trace != nullptr) sink = &traced;
  const TraceScope scope(session_.trace, "forward-backward");
  MUSTER_ASSIGN_OR_RETURN(
      const engine::StepResult step,
      session_.model.engine->Step(
          session_.variables.views(), batch.features,
          {.seed = session_.config.seed, .step = session_.step, .replica = 0}, *sink));
  if (clip_) clip_->Finish();
  if (std::isfinite(step.loss)) ++session_.step;
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
  session_.progress.Update(state_);
}

absl::Status TrainLoop::Finish() {
  if (session_.step > session_.first_step) {
    state_.loss = epoch_loss_.value();
    session_.progress.Update(state_, /*last=*/true);
  }
  for (const auto& hook : hooks_) MUSTER_RETURN_IF_ERROR(hook->End(session_));
  return session_.events->Close();
}

}  // namespace muster::train
