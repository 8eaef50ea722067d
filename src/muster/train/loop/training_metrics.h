// TrainingMetrics: the loss and the metrics of a training over the rows of an epoch so far, as
// Keras's fit shows them. Each row is counted with the weights before its step, in the step's own
// forward pass (with dropout).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "muster/base/status.h"
#include "muster/metrics/metrics.h"
#include "muster/model/model.h"
#include "muster/train/loop/hook.h"
#include "muster/train/loop/mean.h"

namespace muster::train {

// One owner thread. `model` must outlive it.
class TrainingMetrics {
 public:
  explicit TrainingMetrics(const model::Model& model) : model_(model) {}

  // Adds a step. The first one of another epoch begins anew.
  absl::Status Add(const StepValues& values);

  int64_t epoch() const { return epoch_; }  // counted from 0; -1 before the first step
  double loss() const { return loss_.value(); }
  // The metrics besides the loss; none for a model whose step gives none. Too expensive for each
  // step.
  absl::StatusOr<std::vector<metrics::NamedValue>> Values();

 private:
  const model::Model& model_;
  int64_t epoch_ = -1;
  Mean loss_;
  std::unique_ptr<metrics::Metrics> metrics_;  // null: no metrics yet in this epoch
};

}  // namespace muster::train
