// Statistics of many numbers for TensorBoard: histograms, and the fraction of zeros.
#pragma once

#include <cstdint>

#include "muster/formats/summary.h"

namespace muster::train {

// A view of a matrix: element (i, j) is values[i * ld + j].
struct MatrixView {
  const float* values = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t ld = 0;

  // Returns every k-th row, so that at most `max_elements` are left (but at least one row).
  MatrixView Sample(int64_t max_elements) const;
};

// Makes 30 buckets of equal width between the least and the greatest number; one if these are
// equal. Numbers that are not finite are left out; if no number is left, count is 0.
formats::Histogram MakeHistogram(const MatrixView& matrix);

// The fraction of zeros, in [0, 1]; 0 for an empty matrix.
double FractionOfZeros(const MatrixView& matrix);

}  // namespace muster::train
