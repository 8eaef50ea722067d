// Sums that metrics are means of. Internal to this layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

namespace muster::metrics {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// NaN without any weight.
inline double MeanOf(double sum, double weight) { return weight > 0 ? sum / weight : kNaN; }

// The sums of a State, taken one behind the other; there are as many as are taken.
class SumsReader {
 public:
  explicit SumsReader(std::span<const double> sums) : rest_(sums) {}
  void AddTo(std::initializer_list<double*> sums) {
    for (double* const sum : sums) {
      *sum += rest_.front();
      rest_ = rest_.subspan(1);
    }
  }
  void AddTo(std::vector<double>* sums) {
    for (double& sum : *sums) AddTo({&sum});
  }

 private:
  std::span<const double> rest_;
};

// Losses of batches.
class LossMeans {
 public:
  static constexpr size_t kSums = 3;  // of a State

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
  void AppendTo(std::vector<double>* sums) const {
    sums->insert(sums->end(), {sum_, batch_sum_, batches_});
  }
  void Merge(SumsReader* sums) { sums->AddTo({&sum_, &batch_sum_, &batches_}); }
  double sum() const { return sum_; }
  // tf.estimator's "loss": batches count alike, whatever their size.
  double loss() const { return MeanOf(batch_sum_, batches_); }

 private:
  double sum_ = 0;
  double batch_sum_ = 0;
  double batches_ = 0;
};

}  // namespace muster::metrics
