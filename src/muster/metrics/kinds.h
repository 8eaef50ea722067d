// The metrics of each head, and the code they share. Internal to this layer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/metrics/metrics.h"
#include "muster/metrics/scored_rows.h"

namespace muster::metrics {

// `class_names` is not empty.
std::unique_ptr<Metrics> NewMultiClassMetrics(const engine::HeadSpec& head, MetricsSpec spec,
                                              std::vector<std::string> class_names);
std::unique_ptr<Metrics> NewMultiLabelMetrics(const engine::HeadSpec& head, MetricsSpec spec,
                                              std::vector<std::string> class_names);
std::unique_ptr<Metrics> NewRegressionMetrics(const engine::HeadSpec& head);

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
