#include "muster/train/loop/training_metrics.h"

namespace muster::train {

absl::Status TrainingMetrics::Add(const StepValues& values) {
  if (values.epoch != epoch_) {
    loss_ = Mean();
    metrics_.reset();
    epoch_ = values.epoch;
  }
  loss_.Add(values.loss, values.rows);
  if (values.metric_states.empty()) return absl::OkStatus();
  if (metrics_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(metrics_, model::NewMetrics(model_, model_.spec.metrics));
  }
  engine::Forward forward;
  forward.metric_states = values.metric_states;
  metrics_->Add(forward, features::FeatureBatch());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<metrics::NamedValue>> TrainingMetrics::Values() {
  std::vector<metrics::NamedValue> values;
  if (metrics_ == nullptr) return values;
  MUSTER_RETURN_IF_ERROR(metrics_->Finish());
  values = metrics_->Values();
  values.pop_back();  // the loss, which comes with each step
  return values;
}

}  // namespace muster::train
