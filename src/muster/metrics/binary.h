// Metrics of a binary classifier, under the names that tf.estimator gives them. Mergeable: the
// metrics of two shards merged are those of the whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace muster::metrics {

using NamedValue = std::pair<std::string, double>;

// One owner thread.
class BinaryMetrics {
 public:
  // `probabilities` and `labels` (0 or 1), `weights` empty: all 1.
  void Add(std::span<const float> probabilities, std::span<const float> labels,
           std::span<const float> weights);
  // A loss that the caller has summed over the same rows.
  void AddLoss(double weighted_sum) { loss_sum_ += weighted_sum; }
  void Merge(const BinaryMetrics& other);

  // accuracy, accuracy_baseline, auc (exact, ties averaged), auc_interpolated (TensorFlow's 200
  // thresholds, trapezoidal), auc_precision_recall (200 thresholds, TensorFlow's careful
  // interpolation), average_loss, label/mean, precision, prediction/mean, recall; in this order.
  // NaN where undefined: an AUC with one class only or a prediction that is NaN, a mean of no rows;
  // but precision and recall of nothing are 0, as TensorFlow has them. All counts are weighted.
  std::vector<NamedValue> Values() const;
  double rows() const { return weight_sum_; }

 private:
  struct Scored {
    float probability;
    float label;
    float weight;
  };
  double ExactAuc() const;

  std::vector<Scored> scored_;
  double loss_sum_ = 0;
  double weight_sum_ = 0;
};

}  // namespace muster::metrics
