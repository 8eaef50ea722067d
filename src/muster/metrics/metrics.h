// The metrics that a model's head defines, under the names that tf.estimator gives them;
// docs/metrics.md says which are TensorFlow's and which are Muster's. Metrics can be merged: the
// merged metrics of two shards are those of the whole data.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/engine.h"
#include "muster/engine/heads/head_spec.h"
#include "muster/metrics/state.h"

namespace muster::metrics {

using NamedValue = std::pair<std::string, double>;

// Metrics to compute in addition to a head's usual ones.
struct MetricsSpec {
  std::vector<double> thresholds = {};  // in (0, 1); binary and multi-label
  std::vector<int> top_k = {};          // multi-class: 1 to the number of classes; in-batch softmax
  bool per_class = false;               // multi-class and multi-label
  int calibration_buckets = 0;          // binary; 0: none
  // Binary: the input whose values group the rows, such as a user's id, for gauc; "": none.
  std::string group = {};
  friend bool operator==(const MetricsSpec&, const MetricsSpec&) = default;
};

// INVALID_ARGUMENT for values out of range and for settings that do not apply to the head.
absl::Status Validate(const MetricsSpec& spec, const engine::HeadSpec& head);

// One owner thread.
class Metrics {
 public:
  virtual ~Metrics() = default;
  // Adds a batch: logits are rows x head.logits_dimension(), labels rows x head.labels_dimension();
  // weights has one for each row, or is empty: all are 1.
  virtual void Add(std::span<const float> logits, std::span<const float> labels,
                   std::span<const float> weights) = 0;
  // Adds the loss of the same batch, summed over its `rows` rows (weighted).
  virtual void AddLoss(double weighted_sum, int64_t rows) = 0;
  // Sets the groups (MetricsSpec::group) of the rows that are added next: rows with equal numbers
  // form a group.
  virtual void AddGroups(std::span<const uint64_t> /*groups*/) {}
  // Calls Add and AddLoss with the engine's results for a batch.
  virtual void Add(const engine::Forward& forward, const features::FeatureBatch& batch) {
    Add(forward.logits, batch.labels, batch.weights);
    AddLoss(forward.loss_sum, batch.rows);
  }
  // Adds all that `other` has counted. INVALID_ARGUMENT if `other` has another head or spec.
  virtual absl::Status Merge(const Metrics& other) = 0;
  // As Merge, with a state, which may come from another process. INVALID_ARGUMENT also for an
  // invalid state.
  virtual State GetState() const = 0;
  virtual absl::Status Merge(const State& state) = 0;
  // Called after the last batch, before Values: computes what Values needs.
  virtual absl::Status Finish() { return absl::OkStatus(); }
  // Returns the values in a fixed order, NaN where undefined. The last one is "loss": the mean over
  // batches of the batch's weighted sum times HeadSpec::LossScale, as tf.estimator reports it.
  virtual std::vector<NamedValue> Values() const = 0;
};

// `class_names` is empty or has one name per class, which then appears in the names of per-class
// metrics. Errors are those of Validate.
absl::StatusOr<std::unique_ptr<Metrics>> NewMetrics(const engine::HeadSpec& head,
                                                    const MetricsSpec& spec,
                                                    const std::vector<std::string>& class_names);

}  // namespace muster::metrics
