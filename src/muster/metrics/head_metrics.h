// HeadMetrics: the metrics of one kind of head, as data; each is in the file of its head's name.
// And the code they share. Internal to this layer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/metrics/metrics.h"
#include "muster/metrics/scored_rows.h"

namespace muster::metrics {

struct HeadMetrics {
  std::string_view head;  // HeadKind::name
  // The settings of MetricsSpec that apply to it.
  bool takes_thresholds = false, takes_top_k = false, takes_per_class = false;
  bool takes_calibration = false;
  bool takes_group = false;
  // `head` and `spec` are valid; `class_names` has one name per class.
  std::unique_ptr<Metrics> (*make)(const engine::HeadSpec& head, const MetricsSpec& spec,
                                   const std::vector<std::string>& class_names);
};
extern const HeadMetrics kBinaryMetrics, kMultiClassMetrics, kMultiLabelMetrics, kRegressionMetrics,
    kInBatchSoftmaxMetrics;

// accuracy/positive_threshold_T and so on.
void AppendThresholds(const ScoredRows& scored, const std::vector<double>& thresholds,
                      std::vector<NamedValue>* values);
void AppendCalibration(const ScoredRows& scored, int buckets, std::vector<NamedValue>* values);

// `other` as the Kind that can be merged with it.
template <typename Kind>
absl::StatusOr<const Kind*> SameKind(const Metrics& other) {
  const auto* const same = dynamic_cast<const Kind*>(&other);
  if (same != nullptr) return same;
  return absl::InvalidArgumentError("merging metrics of another head");
}

// INVALID_ARGUMENT unless `state` belongs to `head` and has that many sums and lists of rows.
absl::Status CheckState(const State& state, const std::string& head, size_t sums, size_t lists);

}  // namespace muster::metrics
