// HeadMetrics: describes the metrics of one kind of head, each in the file of its head's name; and
// code that heads' metrics share. Internal to this layer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/metrics/metrics.h"
#include "muster/metrics/scored_rows.h"

namespace muster::metrics {

struct HeadMetrics {
  std::string_view head;  // HeadKind::name
  // Whether these settings of MetricsSpec apply to the head.
  bool takes_thresholds = false, takes_top_k = false, takes_per_class = false;
  bool takes_calibration = false;
  bool takes_group = false;
  // Makes the metrics. `head` and `spec` are valid; `class_names` has one name per class.
  std::unique_ptr<Metrics> (*make)(const engine::HeadSpec& head, const MetricsSpec& spec,
                                   const std::vector<std::string>& class_names);
};
extern const HeadMetrics kBinaryMetrics, kMultiClassMetrics, kMultiLabelMetrics, kRegressionMetrics,
    kInBatchSoftmaxMetrics;

// Appends accuracy/positive_threshold_T and so on.
void AppendThresholds(const ScoredRows& scored, const std::vector<double>& thresholds,
                      std::vector<NamedValue>* values);
void AppendCalibration(const ScoredRows& scored, int buckets, std::vector<NamedValue>* values);

// Casts `other` to the Kind that can be merged with this one.
template <typename Kind>
absl::StatusOr<const Kind*> SameKind(const Metrics& other) {
  const auto* const same = dynamic_cast<const Kind*>(&other);
  if (same != nullptr) return same;
  return absl::InvalidArgumentError("cannot merge metrics of another head");
}

// INVALID_ARGUMENT unless `state` belongs to `head` and has this many sums and lists of rows.
absl::Status CheckState(const State& state, const std::string& head, size_t sums, size_t lists);

}  // namespace muster::metrics
