// Sums that metrics are means of. Internal to this layer.
#pragma once

#include <cstdint>
#include <limits>

namespace muster::metrics {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// NaN without any weight.
inline double MeanOf(double sum, double weight) { return weight > 0 ? sum / weight : kNaN; }

// Losses of batches.
class LossMeans {
 public:
  void Add(double weighted_sum, int64_t rows) {
    if (rows < 1) return;
    sum_ += weighted_sum;
    batch_sum_ += weighted_sum / static_cast<double>(rows);
    ++batches_;
  }
  void Merge(const LossMeans& other) {
    sum_ += other.sum_;
    batch_sum_ += other.batch_sum_;
    batches_ += other.batches_;
  }
  double sum() const { return sum_; }
  // tf.estimator's "loss": batches count alike, whatever their size.
  double loss() const { return MeanOf(batch_sum_, static_cast<double>(batches_)); }

 private:
  double sum_ = 0;
  double batch_sum_ = 0;
  int64_t batches_ = 0;
};

}  // namespace muster::metrics
