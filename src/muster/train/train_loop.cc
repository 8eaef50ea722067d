#include "muster/train/train_loop.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace muster::train {
namespace {

int64_t TotalSteps(const TrainSpec& spec, uint64_t records, int64_t first_step) {
  const int64_t batch = spec.input.reader.batch_size;
  const auto rows = static_cast<int64_t>(records);
  const int64_t per_epoch =
      spec.input.reader.drop_remainder ? rows / batch : (rows + batch - 1) / batch;
  int64_t total = spec.input.reader.epochs > 0 ? per_epoch * spec.input.reader.epochs : 0;
  if (spec.fresh_data) total += first_step;
  if (spec.max_steps > 0) total = total > 0 ? std::min(total, spec.max_steps) : spec.max_steps;
  return total;
}

}  // namespace

TrainLoop::TrainLoop(io::FileSystem& files, const Clock& clock, const RunConfig& config,
                     const model::Model& model, Variables& variables)
    : files_(files),
      clock_(clock),
      config_(config),
      model_(model),
      variables_(variables),
      sink_(model, variables),
      saver_(files, config.model_dir, config.keep_checkpoint_max),
      events_(files, config.model_dir, clock) {}

absl::Status TrainLoop::Restore() {
  const auto prefix = checkpoint::Latest(files_, config_.model_dir);
  if (absl::IsNotFound(prefix.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(prefix.status());
  MUSTER_ASSIGN_OR_RETURN(const auto bundle, formats::BundleReader::Open(files_, *prefix));
  MUSTER_RETURN_IF_ERROR(Annotate(checkpoint::Restore(*bundle, variables_.Tensors(true)),
                                  StrCat("resuming from ", *prefix)));
  MUSTER_ASSIGN_OR_RETURN(step_, checkpoint::GlobalStep(*bundle));
  saved_step_ = step_;
  prefix_ = *prefix;
  if (bundle->tensors().contains(kPositionName)) {
    MUSTER_ASSIGN_OR_RETURN(const auto text, bundle->ReadStrings(kPositionName));
    if (text.size() != 1) {
      return absl::DataLossError(StrCat(*prefix, ": ", kPositionName, " is not one text"));
    }
    MUSTER_ASSIGN_OR_RETURN(position_, data::ParsePosition(text[0]));
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainResult> TrainLoop::Run(const TrainSpec& spec, Progress& progress,
                                           const std::atomic<bool>& stop) {
  TrainResult result;
  result.first_step = result.step = step_;
  result.checkpoint = prefix_;
  if (spec.max_steps > 0 && step_ >= spec.max_steps) {
    progress.Note(StrCat("nothing to do: the model is at step ", step_, ", --steps asks for ",
                         spec.max_steps));
    return result;
  }
  const data::Position* start = position_.has_value() && !spec.fresh_data ? &*position_ : nullptr;
  MUSTER_ASSIGN_OR_RETURN(const auto input, Input::Open(files_, model_, spec.input, start));
  state_.first_step = state_.step = step_;
  state_.total_steps = TotalSteps(spec, input->records(), step_);
  state_.epochs = spec.input.reader.epochs;
  last_save_nanos_ = summary_nanos_ = clock_.MonotonicNanos();
  summary_step_ = step_;

  while (spec.max_steps == 0 || step_ < spec.max_steps) {
    if (stop.load(std::memory_order_relaxed)) {
      result.interrupted = true;
      break;
    }
    MUSTER_ASSIGN_OR_RETURN(const InputBatch* batch, input->Next());
    if (batch == nullptr) break;
    MUSTER_RETURN_IF_ERROR(Step(*batch));
    MUSTER_RETURN_IF_ERROR(AfterStep(*batch));
    progress.Update(state_);
  }
  if (step_ > result.first_step) {
    state_.loss = epoch_loss_.value();
    progress.Update(state_, /*last=*/true);
    MUSTER_RETURN_IF_ERROR(WriteSummary());
  }
  MUSTER_RETURN_IF_ERROR(Save());
  MUSTER_RETURN_IF_ERROR(events_.Close());
  result.step = step_;
  result.examples = state_.examples;
  result.seconds = progress.seconds();
  result.loss = epoch_loss_.value();
  result.checkpoint = prefix_;
  result.bad_records = position_.has_value() ? position_->bad_records : 0;
  return result;
}

absl::Status TrainLoop::Step(const InputBatch& batch) {
  sink_.set_step(step_);
  MUSTER_ASSIGN_OR_RETURN(
      const engine::StepResult step,
      model_.engine->Step(variables_.views(), batch.features,
                          {.seed = config_.seed, .step = step_, .replica = 0}, sink_));
  ++step_;
  position_ = batch.position;
  const double rows = batch.features.rows;
  if (batch.epoch != loss_epoch_) {
    epoch_loss_ = Mean();
    loss_epoch_ = batch.epoch;
  }
  report_loss_.Add(step.loss, rows);
  summary_loss_.Add(step.loss, rows);
  epoch_loss_.Add(step.loss, rows);
  state_.examples += static_cast<uint64_t>(batch.features.rows);
  return absl::OkStatus();
}

absl::Status TrainLoop::AfterStep(const InputBatch& batch) {
  state_.step = step_;
  state_.epoch = batch.epoch + 1;
  state_.loss = report_loss_.value();
  state_.has_loss = true;
  // The mean that is shown forgets slowly: a thousand batches.
  if (report_loss_.rows > 1000.0 * batch.features.rows) report_loss_ = Mean();
  if (config_.save_summary_steps > 0 && step_ % config_.save_summary_steps == 0) {
    MUSTER_RETURN_IF_ERROR(WriteSummary());
  }
  const bool by_steps =
      config_.save_checkpoints_steps > 0 && step_ % config_.save_checkpoints_steps == 0;
  const bool by_time = config_.save_checkpoints_secs > 0 && step_ % 16 == 0 &&
                       static_cast<double>(clock_.MonotonicNanos() - last_save_nanos_) * 1e-9 >=
                           config_.save_checkpoints_secs;
  if (by_steps || by_time) return Save();
  return absl::OkStatus();
}

absl::Status TrainLoop::Save() {
  if (step_ == saved_step_) return absl::OkStatus();
  const std::vector<checkpoint::Tensor> tensors = variables_.Tensors(true);
  std::vector<std::pair<std::string, std::string>> strings;
  if (position_.has_value()) {
    strings.emplace_back(kPositionName, data::SerializePosition(*position_));
  }
  MUSTER_ASSIGN_OR_RETURN(prefix_, saver_.Save(step_, tensors, strings));
  saved_step_ = step_;
  last_save_nanos_ = clock_.MonotonicNanos();
  return absl::OkStatus();
}

absl::Status TrainLoop::WriteSummary() {
  if (step_ == summary_step_) return absl::OkStatus();
  const int64_t now = clock_.MonotonicNanos();
  const double seconds = std::max(static_cast<double>(now - summary_nanos_) * 1e-9, 1e-9);
  MUSTER_RETURN_IF_ERROR(events_.WriteScalars(
      step_, {{"loss", static_cast<float>(summary_loss_.value())},
              {"global_step/sec", static_cast<float>((step_ - summary_step_) / seconds)},
              {"examples/sec", static_cast<float>(summary_loss_.rows / seconds)}}));
  summary_loss_ = Mean();
  summary_step_ = step_;
  summary_nanos_ = now;
  return absl::OkStatus();
}

}  // namespace muster::train
