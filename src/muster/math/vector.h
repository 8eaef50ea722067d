// Loops over floats: sums and the optimizers' update rules, compiled for several instruction sets
// of which one is chosen at run time (kernels.h).
//
// Update rules follow TensorFlow's kernels (tensorflow/core/kernels/training_ops.cc) operation by
// operation, with true square roots and divisions (except for Adagrad) and no contraction, so that
// every instruction set gives the same bits. Pointers need no alignment and must not overlap,
// unless stated otherwise. All functions are thread-safe for distinct memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/math/kernels.h"

namespace muster::math {

inline void Fill(float* x, size_t n, float value) { ActiveKernels().fill(x, n, value); }
// y += alpha * x
inline void Axpy(float alpha, const float* x, float* y, size_t n) {
  ActiveKernels().axpy(alpha, x, y, n);
}
// y += x
inline void AddTo(const float* x, float* y, size_t n) { ActiveKernels().add_to(x, y, n); }
// x *= alpha
inline void Scale(float alpha, float* x, size_t n) { ActiveKernels().scale(alpha, x, n); }
// x = max(-limit, min(limit, x)); NaN stays NaN.
inline void Clamp(float limit, float* x, size_t n) { ActiveKernels().clamp(limit, x, n); }
// Sums in an order that is fixed for each instruction set.
inline float Dot(const float* x, const float* y, size_t n) { return ActiveKernels().dot(x, y, n); }
inline double SumOfSquares(const float* x, size_t n) {
  return ActiveKernels().sum_of_squares(x, n);
}
inline double SumOfMagnitudes(const float* x, size_t n) {
  return ActiveKernels().sum_of_magnitudes(x, n);
}

// sums[j] = sum over rows of x[i * ld + j], or sums[j] += that.
inline void ColumnSums(const float* x, int rows, int cols, int64_t ld, bool accumulate,
                       float* sums) {
  ActiveKernels().column_sums(x, rows, cols, ld, accumulate, sums);
}

// ApplyAdagradV2: acc += g^2; w -= (g * lr) / (sqrt(acc) + epsilon). The step has a relative error
// of at most 1e-6 where all roots in a block are over 5,000 epsilon, and is exact to the last bit
// elsewhere.
inline void AdagradUpdate(float* w, float* acc, const float* g, size_t n, const AdagradRule& rule) {
  ActiveKernels().adagrad(w, acc, g, n, rule);
}
// ApplyFtrlV2 with learning_rate_power -0.5:
//   acc' = acc + g^2; z += g + 2 l2_shrinkage w - (sqrt(acc') - sqrt(acc)) / lr * w;
//   w = |z| > l1 ? (sign(z) l1 - z) / (sqrt(acc') / lr + 2 l2) : 0.
// `z` is the slot "linear", `acc` the slot "accumulator". Keras's beta is part of l2: + beta / 2lr.
inline void FtrlUpdate(float* w, float* z, float* acc, const float* g, size_t n,
                       const FtrlRule& rule) {
  ActiveKernels().ftrl(w, z, acc, g, n, rule);
}
// ApplyAdam: m += (g - m)(1 - beta1); v += (g^2 - v)(1 - beta2); w -= m rate / (sqrt(v) + epsilon).
inline void AdamUpdate(float* w, float* m, float* v, const float* g, size_t n,
                       const AdamRule& rule) {
  ActiveKernels().adam(w, m, v, g, n, rule);
}

// ApplyKerasMomentum: mom = momentum mom - lr g; w += nesterov ? momentum mom - lr g : mom.
inline void MomentumUpdate(float* w, float* mom, const float* g, size_t n,
                           const MomentumRule& rule) {
  ActiveKernels().momentum(w, mom, g, n, rule);
}
// Keras 2's RMSprop. ms = rho ms + (1 - rho) g^2; with `mg`: mg = rho mg + (1 - rho) g and
// d = ms - mg^2, else d = ms. Without `mom`: w -= lr g / (sqrt(d) + epsilon); with it
// (ApplyRMSProp, ApplyCenteredRMSProp): mom = momentum mom + lr g / sqrt(d + epsilon), w -= mom.
// `mom` and `mg` may be null.
inline void RmsPropUpdate(float* w, float* ms, float* mom, float* mg, const float* g, size_t n,
                          const RmsPropRule& rule) {
  ActiveKernels().rms_prop(w, ms, mom, mg, g, n, rule);
}
// Keras 2's Adam for a table. AdamDecay is for elements whose gradient is 0. AdamSparseUpdateRows
// is for rows that have a gradient: m = beta1 m + (1 - beta1) g, v likewise; w -= rate m / (sqrt(v)
// + epsilon).
inline void AdamDecay(float* w, float* m, float* v, size_t n, const AdamRule& rule) {
  ActiveKernels().adam_decay(w, m, v, n, rule);
}

// The same rules for the rows `rows` (distinct, `count` of them) of tables with `cols` columns; `g`
// is count x cols.
inline void AdagradUpdateRows(float* w, float* acc, size_t cols, const int32_t* rows, size_t count,
                              const float* g, const AdagradRule& rule) {
  ActiveKernels().adagrad_rows(w, acc, cols, rows, count, g, rule);
}
inline void FtrlUpdateRows(float* w, float* z, float* acc, size_t cols, const int32_t* rows,
                           size_t count, const float* g, const FtrlRule& rule) {
  ActiveKernels().ftrl_rows(w, z, acc, cols, rows, count, g, rule);
}
inline void AdamUpdateRows(float* w, float* m, float* v, size_t cols, const int32_t* rows,
                           size_t count, const float* g, const AdamRule& rule) {
  ActiveKernels().adam_rows(w, m, v, cols, rows, count, g, rule);
}
inline void AdamSparseUpdateRows(float* w, float* m, float* v, size_t cols, const int32_t* rows,
                                 size_t count, const float* g, const AdamRule& rule) {
  ActiveKernels().adam_sparse_rows(w, m, v, cols, rows, count, g, rule);
}
// w -= lr g.
inline void SgdUpdateRows(float* w, size_t cols, const int32_t* rows, size_t count, const float* g,
                          float learning_rate) {
  ActiveKernels().sgd_rows(w, cols, rows, count, g, learning_rate);
}
inline void MomentumUpdateRows(float* w, float* mom, size_t cols, const int32_t* rows, size_t count,
                               const float* g, const MomentumRule& rule) {
  ActiveKernels().momentum_rows(w, mom, cols, rows, count, g, rule);
}
inline void RmsPropUpdateRows(float* w, float* ms, float* mom, float* mg, size_t cols,
                              const int32_t* rows, size_t count, const float* g,
                              const RmsPropRule& rule) {
  ActiveKernels().rms_prop_rows(w, ms, mom, mg, cols, rows, count, g, rule);
}

// The rules of Keras 3 (docs/formats/keras_export.md) for gradients g that are sums, where s is the
// sum of the squares of the summands. `squares` is s; if null, s is g^2.
//   Adagrad: acc += s; w -= (g * lr) / sqrt(acc + epsilon).
//   Ftrl:    as FtrlUpdate with s for g^2.
//   Adam:    m += (g - m)(1 - beta1); v += (s - v)(1 - beta2); w -= m rate / (sqrt(v) + epsilon).
//   RMSprop: v = rho v + (1 - rho) s; with `mean`: mean = rho mean + (1 - rho) g and
//            d = max(0, v - mean^2), else d = v; x = lr g / sqrt(d + epsilon); with `mom`:
//            x = mom = momentum mom + x; w -= x. `mom` and `mean` may be null.
inline void KerasAdagradUpdate(float* w, float* acc, const float* g, const float* squares, size_t n,
                               const AdagradRule& rule) {
  ActiveKernels().keras_adagrad(w, acc, g, squares, n, rule);
}
inline void KerasFtrlUpdate(float* w, float* z, float* acc, const float* g, const float* squares,
                            size_t n, const FtrlRule& rule) {
  ActiveKernels().keras_ftrl(w, z, acc, g, squares, n, rule);
}
inline void KerasAdamUpdate(float* w, float* m, float* v, const float* g, const float* squares,
                            size_t n, const KerasAdamRule& rule) {
  ActiveKernels().keras_adam(w, m, v, g, squares, n, rule);
}
inline void KerasRmsPropUpdate(float* w, float* v, float* mom, float* mean, const float* g,
                               const float* squares, size_t n, const KerasRmsPropRule& rule) {
  ActiveKernels().keras_rms_prop(w, v, mom, mean, g, squares, n, rule);
}
// The same rules for rows, as above; `g` is count x 2 cols: each row has its sums, then its
// squares.
inline void KerasAdagradUpdateRows(float* w, float* acc, size_t cols, const int32_t* rows,
                                   size_t count, const float* g, const AdagradRule& rule) {
  ActiveKernels().keras_adagrad_rows(w, acc, cols, rows, count, g, rule);
}
inline void KerasFtrlUpdateRows(float* w, float* z, float* acc, size_t cols, const int32_t* rows,
                                size_t count, const float* g, const FtrlRule& rule) {
  ActiveKernels().keras_ftrl_rows(w, z, acc, cols, rows, count, g, rule);
}
inline void KerasAdamUpdateRows(float* w, float* m, float* v, size_t cols, const int32_t* rows,
                                size_t count, const float* g, const KerasAdamRule& rule) {
  ActiveKernels().keras_adam_rows(w, m, v, cols, rows, count, g, rule);
}
inline void KerasRmsPropUpdateRows(float* w, float* v, float* mom, float* mean, size_t cols,
                                   const int32_t* rows, size_t count, const float* g,
                                   const KerasRmsPropRule& rule) {
  ActiveKernels().keras_rms_prop_rows(w, v, mom, mean, cols, rows, count, g, rule);
}

}  // namespace muster::math
