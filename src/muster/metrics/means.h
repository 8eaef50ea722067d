// The sums from which metrics compute means. Internal to this layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

#include "muster/engine/heads/head_spec.h"

namespace muster::metrics {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Returns NaN if the weight is 0.
inline double ComputeMean(double sum, double weight) { return weight > 0 ? sum / weight : kNaN; }

// Reads the sums of a State in order; the caller must not read more than there are.
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

// Computes means of the losses of batches.
class LossMeans {
 public:
  static constexpr size_t kSums = 3;  // the number of sums in a State

  explicit LossMeans(const engine::HeadSpec& head = {}) : head_(head) {}
  void Add(double weighted_sum, int64_t rows) {
    if (rows < 1) return;
    sum_ += weighted_sum;
    batch_sum_ += weighted_sum * head_.LossScale(static_cast<double>(rows));
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
  // tf.estimator's "loss": all batches count alike, whatever their size.
  double loss() const { return ComputeMean(batch_sum_, batches_); }

 private:
  engine::HeadSpec head_;
  double sum_ = 0;
  double batch_sum_ = 0;
  double batches_ = 0;
};

}  // namespace muster::metrics
