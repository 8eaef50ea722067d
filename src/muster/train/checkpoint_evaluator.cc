#include "muster/train/checkpoint_evaluator.h"

#include <cmath>
#include <utility>

#include "muster/checkpoint/best.h"
#include "muster/train/loop/evaluations.h"

namespace muster::train {
namespace {

double SecondsBetween(int64_t from, int64_t to) { return static_cast<double>(to - from) * 1e-9; }

}  // namespace

ExportContext CheckpointEvaluator::Context() {
  const std::string& model_dir = estimator_.config().model_dir;
  return {*files_, estimator_.clock(), model_dir, EvalFolder(model_dir, spec_.name),
          [this](const std::string& folder) { return estimator_.Export(folder); }};
}

absl::Status CheckpointEvaluator::Begin(io::FileSystem& files) {
  files_ = &files;
  start_nanos_ = estimator_.clock().MonotonicNanos();
  checkpoint::RemoveBestLeftovers(files, estimator_.config().model_dir);
  MUSTER_RETURN_IF_ERROR(ReadBest());
  const ExportContext context = Context();
  for (const auto& exporter : spec_.exporters) {
    MUSTER_RETURN_IF_ERROR(RemoveHalfExports(context, exporter->name()));
    MUSTER_RETURN_IF_ERROR(exporter->Begin(context));
  }
  return absl::OkStatus();
}

absl::Status CheckpointEvaluator::ReadBest() {
  best_.reset();
  const std::string& model_dir = estimator_.config().model_dir;
  const auto best = checkpoint::ReadBest(*files_, model_dir);
  // Without a readable record the next evaluation is the best.
  if (absl::IsDataLoss(best.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(best.status());
  if (!*best || (*best)->metric != spec_.best_by.metric ||
      (*best)->higher_is_better != spec_.best_by.higher_is_better) {
    return absl::OkStatus();
  }
  if (checkpoint::FindBest(*files_, model_dir).ok()) best_ = (*best)->value;
  return absl::OkStatus();
}

absl::Status CheckpointEvaluator::KeepIfBest(const EvalResult& result) {
  const auto& [metric, higher_is_better] = spec_.best_by;
  const std::string& model_dir = estimator_.config().model_dir;
  const auto found = FindMetric(Metrics(result.metrics.begin(), result.metrics.end()), metric, "");
  if (!found.ok()) return absl::OkStatus();  // hooks and exporters that need the metric report it
  const double value = *found;
  const bool better = !best_ || (std::isnan(*best_) && !std::isnan(value)) ||
                      (higher_is_better ? value > *best_ : value < *best_);
  // The record names only checkpoints of this folder.
  if (!better || io::Dirname(result.checkpoint) != io::Dirname(io::JoinPath(model_dir, "m"))) {
    return absl::OkStatus();
  }
  MUSTER_RETURN_IF_ERROR(checkpoint::WriteBest(*files_, model_dir,
                                               {.name = io::Basename(result.checkpoint),
                                                .step = result.step,
                                                .metric = metric,
                                                .higher_is_better = higher_is_better,
                                                .value = value}));
  best_ = value;
  return absl::OkStatus();
}

bool CheckpointEvaluator::IsTime() const {
  const int64_t now = estimator_.clock().MonotonicNanos();
  if (SecondsBetween(start_nanos_, now) < spec_.start_delay_secs) return false;
  return !last_step_ || SecondsBetween(last_nanos_, now) >= spec_.throttle_secs;
}

absl::Status CheckpointEvaluator::Evaluate(int64_t step, bool is_final, Progress& progress,
                                           TrainingSoFar training) {
  const bool again = last_step_ == step;
  std::vector<std::string> made;
  if (again) {
    MUSTER_RETURN_IF_ERROR(Export(*result_, is_final, &made));
  } else {
    Progress nested = progress.Nested();
    exports_.clear();
    auto result = estimator_.Evaluate(spec_, nested, [&](const EvalResult& found) {
      MUSTER_RETURN_IF_ERROR(KeepIfBest(found));
      return Export(found, is_final, &made);
    });
    // Data that grows may have no record to evaluate on yet, or not any more.
    if (spec_.input.growth && absl::IsOutOfRange(result.status())) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(result.status());
    result_ = *std::move(result);
    progress.Exclude(nested.seconds());
    result_->training = std::move(training.epoch);
    result_->trained_records = training.records;
  }
  last_step_ = step;
  last_nanos_ = estimator_.clock().MonotonicNanos();
  if (report_ && (!again || !made.empty())) report_(*result_, made);
  return absl::OkStatus();
}

absl::Status CheckpointEvaluator::Finish(int64_t step, Progress& progress, TrainingSoFar training) {
  if (last_step_ == step && spec_.exporters.empty()) return absl::OkStatus();
  return Evaluate(step, /*is_final=*/true, progress, std::move(training));
}

absl::Status CheckpointEvaluator::Export(const EvalResult& result, bool is_final,
                                         std::vector<std::string>* made) {
  const ExportContext context = Context();
  const Metrics metrics(result.metrics.begin(), result.metrics.end());
  for (const auto& exporter : spec_.exporters) {
    // A checkpoint that was exported before the end was known is not exported again.
    if (Exported(*exporter)) continue;
    MUSTER_ASSIGN_OR_RETURN(std::string folder, exporter->Export(context, metrics, is_final));
    if (!folder.empty()) made->push_back(std::move(folder));
  }
  exports_.insert(exports_.end(), made->begin(), made->end());
  return absl::OkStatus();
}

bool CheckpointEvaluator::Exported(const Exporter& exporter) const {
  for (const std::string& folder : exports_) {
    if (io::Basename(io::Dirname(folder)) == exporter.name()) return true;
  }
  return false;
}

}  // namespace muster::train
