// EvaluationMetrics: the metrics of the head and of a model function, over the same batches.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/metrics/metrics.h"
#include "muster/train/input/input.h"
#include "muster/train/loop/model_fn.h"
#include "muster/train/loop/specs.h"

namespace muster::train {

// One owner thread.
class EvaluationMetrics {
 public:
  static absl::StatusOr<EvaluationMetrics> Create(const ModeModel& mode, const EvalSpec& spec);

  void Add(const engine::Forward& forward, const InputBatch& batch);

  // UNIMPLEMENTED if a metric of a model function, which has no state, is among them.
  absl::Status CheckMergeable() const;
  metrics::Metrics& head() { return *head_; }

  // Call before Values.
  absl::Status Finish() { return head_->Finish(); }
  // All metrics, with "loss" last. A user's metric replaces a metric of the head of the same name.
  std::vector<metrics::NamedValue> Values() const;

 private:
  std::unique_ptr<metrics::Metrics> head_;
  std::vector<std::pair<std::string, std::unique_ptr<EvalMetric>>> custom_;
};

}  // namespace muster::train
