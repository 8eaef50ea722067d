// Kernels: the inner loops of training, compiled once for each instruction set from the same source
// (vector_kernels.inc, update_kernels.inc, gemm_kernels.inc, ...) and chosen at run time by the
// processor's features.
//
// Callers use the functions of vector.h, rows.h, layers.h and gemm.h, which call through this
// table. Two instruction sets give the same numbers except for the order and fusing of
// multiply-adds in sums; the update rules and layers.h give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace muster::math {

struct AdagradRule {
  float learning_rate = 0;
  float epsilon = 0;
};

struct FtrlRule {
  float learning_rate = 0;
  float l1 = 0;
  float l2 = 0;
  float l2_shrinkage = 0;
};

struct AdamRule {
  float rate = 0;  // learning rate * sqrt(1 - beta2^t) / (1 - beta1^t), t counts from 1
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
};

// The parameters of Keras's Adam, whose factors 1 - beta are rounded once.
struct KerasAdamRule {
  float rate = 0;  // as in AdamRule
  float one_minus_beta1 = 0, one_minus_beta2 = 0;
  float epsilon = 0;
};

struct MomentumRule {
  float learning_rate = 0;
  float momentum = 0;
  bool nesterov = false;
};

struct RmsPropRule {
  float learning_rate = 0;
  float rho = 0;
  float momentum = 0;
  float epsilon = 0;
};

struct KerasRmsPropRule {
  float learning_rate = 0;
  float rho = 0, one_minus_rho = 0;
  float momentum = 0;
  float epsilon = 0;
};

// A place in a stream of base/random.h: a number depends on these values and on its index in the
// stream.
struct RandomPlace {
  uint32_t key[2] = {};
  uint32_t stream[2] = {};
};

// A matrix of rows x cols; row i lies at data + i * ld.
struct MatrixView {
  const float* data = nullptr;
  int64_t ld = 0;
  int rows = 0, cols = 0;
};

// By column: xhat = (x - mean) scale, y = xhat gamma + beta.
struct Normalization {
  const float* mean = nullptr;
  const float* scale = nullptr;
  const float* gamma = nullptr;
  const float* beta = nullptr;
};

// A table whose first row stands for "no id", and the ids: row i of the batch has ids[i], which is
// at least -1.
struct RowTable {
  const float* data = nullptr;
  const int32_t* ids = nullptr;
};

// The arguments of a dense layer's output for rows of ids and numbers: kernels for the numbers, and
// tables in which each row of an embedding has been multiplied by its part of the kernel.
struct RowSum {
  const RowTable* tables = nullptr;
  size_t count = 0;
  int64_t stride = 0;           // of the rows of tables, `kernel` and `bias`; a multiple of 16
  const float* bias = nullptr;  // [stride]
  // Row i has the numbers inputs[i * ld_inputs + columns[p]], p < k.
  const float* inputs = nullptr;
  int64_t ld_inputs = 0;
  const int32_t* columns = nullptr;
  int k = 0;
  const float* kernel = nullptr;  // k x stride
  bool relu = false;
};

struct GemmCall;  // gemm.h

struct Kernels {
  const char* name;  // "avx512", "avx2", "baseline": recorded with a run

  void (*fill)(float* x, size_t n, float value);
  void (*axpy)(float alpha, const float* x, float* y, size_t n);
  void (*add_to)(const float* x, float* y, size_t n);
  void (*scale)(float alpha, float* x, size_t n);
  void (*clamp)(float limit, float* x, size_t n);
  float (*dot)(const float* x, const float* y, size_t n);
  double (*sum_of_squares)(const float* x, size_t n);
  double (*sum_of_magnitudes)(const float* x, size_t n);

  void (*adagrad)(float* w, float* acc, const float* g, size_t n, const AdagradRule& rule);
  void (*ftrl)(float* w, float* z, float* acc, const float* g, size_t n, const FtrlRule& rule);
  void (*adam)(float* w, float* m, float* v, const float* g, size_t n, const AdamRule& rule);
  void (*adagrad_rows)(float* w, float* acc, size_t cols, const int32_t* rows, size_t count,
                       const float* g, const AdagradRule& rule);
  void (*ftrl_rows)(float* w, float* z, float* acc, size_t cols, const int32_t* rows, size_t count,
                    const float* g, const FtrlRule& rule);
  void (*adam_rows)(float* w, float* m, float* v, size_t cols, const int32_t* rows, size_t count,
                    const float* g, const AdamRule& rule);
  void (*adam_decay)(float* w, float* m, float* v, size_t n, const AdamRule& rule);
  void (*adam_sparse_rows)(float* w, float* m, float* v, size_t cols, const int32_t* rows,
                           size_t count, const float* g, const AdamRule& rule);
  void (*sgd_rows)(float* w, size_t cols, const int32_t* rows, size_t count, const float* g,
                   float learning_rate);
  void (*momentum)(float* w, float* mom, const float* g, size_t n, const MomentumRule& rule);
  void (*momentum_rows)(float* w, float* mom, size_t cols, const int32_t* rows, size_t count,
                        const float* g, const MomentumRule& rule);
  void (*rms_prop)(float* w, float* ms, float* mom, float* mg, const float* g, size_t n,
                   const RmsPropRule& rule);
  void (*rms_prop_rows)(float* w, float* ms, float* mom, float* mg, size_t cols,
                        const int32_t* rows, size_t count, const float* g, const RmsPropRule& rule);

  // The rules of Keras. `squares` has a value for each of `g`; if null, the squares of `g` are
  // used. For rows, `g` is count x 2 cols: each row has its cols sums, then its cols squares.
  void (*keras_adagrad)(float* w, float* acc, const float* g, const float* squares, size_t n,
                        const AdagradRule& rule);
  void (*keras_ftrl)(float* w, float* z, float* acc, const float* g, const float* squares, size_t n,
                     const FtrlRule& rule);
  void (*keras_adam)(float* w, float* m, float* v, const float* g, const float* squares, size_t n,
                     const KerasAdamRule& rule);
  void (*keras_rms_prop)(float* w, float* v, float* mom, float* mean, const float* g,
                         const float* squares, size_t n, const KerasRmsPropRule& rule);
  void (*keras_adagrad_rows)(float* w, float* acc, size_t cols, const int32_t* rows, size_t count,
                             const float* g, const AdagradRule& rule);
  void (*keras_ftrl_rows)(float* w, float* z, float* acc, size_t cols, const int32_t* rows,
                          size_t count, const float* g, const FtrlRule& rule);
  void (*keras_adam_rows)(float* w, float* m, float* v, size_t cols, const int32_t* rows,
                          size_t count, const float* g, const KerasAdamRule& rule);
  void (*keras_rms_prop_rows)(float* w, float* v, float* mom, float* mean, size_t cols,
                              const int32_t* rows, size_t count, const float* g,
                              const KerasRmsPropRule& rule);

  void (*gather_rows)(const float* table, size_t cols, const int32_t* indices, size_t n, float* out,
                      int64_t ld);
  void (*sum_rows)(const RowSum& sum, size_t first, size_t n, size_t cols, float* out, int64_t ld);
  void (*gather_add)(const float* table, const int32_t* indices, size_t n, float* out);
  void (*scatter_add_rows)(const float* x, int64_t ld, size_t cols, const int32_t* indices,
                           size_t n, float* sums);

  size_t (*gemm_workspace)(const GemmCall& call);  // returns a number of floats
  void (*gemm)(const GemmCall& call, float* workspace);
  void (*column_sums)(const float* x, int rows, int cols, int64_t ld, bool accumulate, float* sums);

  void (*dropout_factors)(const RandomPlace& random, uint64_t first, size_t n,
                          uint32_t dropped_below, float kept, float* factors);
  void (*multiply)(const float* x, const float* by, float* y, size_t n);
  void (*multiply_add_to)(const float* x, const float* by, float* y, size_t n);
  void (*add_columns)(const MatrixView& x, double* sums);
  void (*add_squared_distances)(const MatrixView& x, const double* centre, double* sums);
  void (*normalize)(const MatrixView& x, const Normalization& by, float* y, int64_t ldy);
  void (*add_normalization_sums)(const MatrixView& x, const float* dy, int64_t lddy,
                                 const Normalization& by, double* dy_sums, double* dy_xhat_sums);
  void (*normalization_gradient)(const MatrixView& x, const float* dy, int64_t lddy,
                                 const Normalization& by, const double* dy_mean,
                                 const double* dy_xhat_mean, bool accumulate, float* dx,
                                 int64_t lddx);
};

// Returns the kernels that this processor can run, best first; never empty. The environment
// variable MUSTER_INSTRUCTIONS (baseline, avx2, avx512 or amx), read once, names the best that may
// be used: to get the same numbers as on an older processor, and for tests.
std::span<const Kernels* const> SupportedKernels();

inline const Kernels& ActiveKernels() {
  static const Kernels& active = *SupportedKernels().front();
  return active;
}

// Products in bfloat16 with AMX tiles.
struct TileKernels {
  const char* name;                                // "amx"
  size_t (*gemm_workspace)(const GemmCall& call);  // returns a number of floats
  void (*gemm)(const GemmCall& call, float* workspace);
  size_t (*packed_b_floats)(const GemmCall& call);
  void (*pack_b)(const GemmCall& call, int part, int parts, float* to);
};

// Returns null if the processor or the operating system does not support tiles, or if
// MUSTER_INSTRUCTIONS does not allow them.
const TileKernels* ActiveTileKernels();

// Returns the value of MUSTER_INSTRUCTIONS if it names no instruction set (it is then ignored), for
// an INVALID_ARGUMENT error; else null.
const char* UnknownInstructions();

}  // namespace muster::math
