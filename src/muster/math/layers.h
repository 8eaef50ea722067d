// Dropout and batch normalisation of a run of rows. Every instruction set gives the same bits: the
// sum of a column is taken row by row, in double, without contraction. Outputs must not overlap
// inputs. Thread-safe for distinct memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/math/kernels.h"

namespace muster::math {

// factors[i] = 0 if number first + i of the stream is less than `dropped_below`, else `kept`.
inline void DropoutFactors(const RandomPlace& random, uint64_t first, size_t n,
                           uint32_t dropped_below, float kept, float* factors) {
  ActiveKernels().dropout_factors(random, first, n, dropped_below, kept, factors);
}
// y = x * by
inline void Multiply(const float* x, const float* by, float* y, size_t n) {
  ActiveKernels().multiply(x, by, y, n);
}
// y += x * by
inline void MultiplyAddTo(const float* x, const float* by, float* y, size_t n) {
  ActiveKernels().multiply_add_to(x, by, y, n);
}

// By column: sums += x.
inline void AddColumns(const MatrixView& x, double* sums) { ActiveKernels().add_columns(x, sums); }
// By column: sums += (x - centre)^2.
inline void AddSquaredDistances(const MatrixView& x, const double* centre, double* sums) {
  ActiveKernels().add_squared_distances(x, centre, sums);
}

// y = xhat gamma + beta
inline void Normalize(const MatrixView& x, const Normalization& by, float* y, int64_t ldy) {
  ActiveKernels().normalize(x, by, y, ldy);
}
// By column: dy_sums += dy, dy_xhat_sums += dy xhat. `dy` has as many rows and columns as x.
inline void AddNormalizationSums(const MatrixView& x, const float* dy, int64_t lddy,
                                 const Normalization& by, double* dy_sums, double* dy_xhat_sums) {
  ActiveKernels().add_normalization_sums(x, dy, lddy, by, dy_sums, dy_xhat_sums);
}
// dx = gamma scale (dy - dy_mean - xhat dy_xhat_mean), or dx += that.
inline void NormalizationGradient(const MatrixView& x, const float* dy, int64_t lddy,
                                  const Normalization& by, const double* dy_mean,
                                  const double* dy_xhat_mean, bool accumulate, float* dx,
                                  int64_t lddx) {
  ActiveKernels().normalization_gradient(x, dy, lddy, by, dy_mean, dy_xhat_mean, accumulate, dx,
                                         lddx);
}

}  // namespace muster::math
