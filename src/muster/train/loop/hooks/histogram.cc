#include "muster/train/loop/hooks/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace muster::train {
namespace {

constexpr int kBuckets = 30;  // as tf.summary.histogram's default

template <typename Take>
void ForEachNumber(const MatrixView& matrix, Take take) {
  for (int64_t i = 0; i < matrix.rows; ++i) {
    const float* const row = matrix.values + i * matrix.ld;
    for (int64_t j = 0; j < matrix.cols; ++j) take(row[j]);
  }
}

}  // namespace

MatrixView MatrixView::Sample(int64_t max_elements) const {
  if (rows * cols <= max_elements) return *this;
  const int64_t kept = std::max<int64_t>(max_elements / cols, 1);
  const int64_t step = (rows + kept - 1) / kept;
  return {values, (rows + step - 1) / step, cols, ld * step};
}

formats::Histogram MakeHistogram(const MatrixView& matrix) {
  formats::Histogram histogram;
  float min = std::numeric_limits<float>::infinity();
  float max = -min;
  ForEachNumber(matrix, [&](float x) {
    if (!std::isfinite(x)) return;
    min = std::min(min, x);
    max = std::max(max, x);
    histogram.count += 1;
    histogram.sum += x;
    histogram.sum_of_squares += static_cast<double>(x) * x;
  });
  if (histogram.count == 0) return histogram;
  histogram.min = min;
  histogram.max = max;
  if (min == max) {
    histogram.limits = {max};
    histogram.buckets = {histogram.count};
    return histogram;
  }
  const double width = (histogram.max - histogram.min) / kBuckets;
  int64_t counts[kBuckets] = {};
  ForEachNumber(matrix, [&](float x) {
    if (!std::isfinite(x)) return;
    const int bucket = static_cast<int>((x - histogram.min) / width);
    ++counts[std::min(bucket, kBuckets - 1)];
  });
  histogram.buckets.assign(counts, counts + kBuckets);
  for (int i = 1; i < kBuckets; ++i) histogram.limits.push_back(histogram.min + i * width);
  histogram.limits.push_back(histogram.max);
  return histogram;
}

double FractionOfZeros(const MatrixView& matrix) {
  const int64_t total = matrix.rows * matrix.cols;
  if (total == 0) return 0;
  int64_t zeros = 0;
  ForEachNumber(matrix, [&](float x) { zeros += x == 0; });
  return static_cast<double>(zeros) / static_cast<double>(total);
}

}  // namespace muster::train
