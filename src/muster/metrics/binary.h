// Metrics of a binary classifier.
#pragma once

#include "muster/metrics/metrics.h"
#include "muster/metrics/scored_rows.h"

namespace muster::metrics {

// One owner thread.
class BinaryMetrics final : public Metrics {
 public:
  explicit BinaryMetrics(MetricsSpec spec = {}, const engine::HeadSpec& head = {})
      : spec_(std::move(spec)), loss_(head) {}

  void Add(std::span<const float> logits, std::span<const float> labels,
           std::span<const float> weights) override;
  // As Add, with probabilities instead of logits; class 1 is predicted above 1/2.
  void AddProbabilities(std::span<const float> probabilities, std::span<const float> labels,
                        std::span<const float> weights);
  void AddLoss(double weighted_sum, int64_t rows) override { loss_.Add(weighted_sum, rows); }
  void AddGroups(std::span<const uint64_t> groups) override {
    groups_.insert(groups_.end(), groups.begin(), groups.end());
  }
  absl::Status Merge(const Metrics& other) override;
  State GetState() const override;
  absl::Status Merge(const State& state) override;

  // Returns accuracy, accuracy_baseline, auc (exact), auc_interpolated, auc_precision_recall,
  // average_loss, label/mean, precision, prediction/mean and recall; for each threshold
  // accuracy/positive_threshold_T, precision/... and recall/...; with buckets calibration (the sum
  // of predictions / the sum of labels), calibration/error (the expected calibration error) and
  // calibration/bucket_I/{label_mean,prediction_mean,weight}; with a group gauc, gauc/groups and
  // gauc/groups_left_out; at last loss. All counts are weighted.
  std::vector<NamedValue> Values() const override;
  double rows() const { return scored_.weight(); }

 private:
  MetricsSpec spec_;
  ScoredRows scored_;
  std::vector<uint64_t> groups_;  // by row of scored_
  LossMeans loss_;
};

}  // namespace muster::metrics
