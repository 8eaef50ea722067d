// Gemm: products of small and medium float matrices on one thread. A layer's work on its output
// (bias, relu, a mask) is done while the result is still in registers.
//
// Every element of C is one chain of fused multiply-adds over k, in blocks of fixed length. The
// chain depends on k only: not on the element's row, the number of rows, or any alignment.
// Method: Goto, van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/math/aligned_buffer.h"
#include "muster/math/kernels.h"

namespace muster::math {

// C[m,n] = A[m,k] B[k,n], or += . Element (i, p) of A lies at a[i * a_row + p * a_col]; a row-major
// matrix has a_col = 1, a transposed one a_row = 1. B is row-major with ldb floats per row, or with
// b_transposed an [n,k] matrix. C must not overlap A or B.
struct GemmCall {
  int m = 0, n = 0, k = 0;
  const float* a = nullptr;
  int64_t a_row = 0, a_col = 1;
  const float* b = nullptr;
  int64_t ldb = 0;
  bool b_transposed = false;
  float* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;
  const float* bias = nullptr;  // [n], added to every row
  bool relu = false;            // then max(., 0)
  const float* mask = nullptr;  // [m,n]: then 0 where mask <= 0
  int64_t ldmask = 0;
  // A and B are rounded to bfloat16 (to nearest even), sums and the rest are float. Used only if it
  // is faster, which depends on m, n and k only. Needs SupportsBf16(); a_row or a_col must be 1.
  // Numbers below 2^-126 count as 0.
  bool bf16 = false;
  // The complete result of PackForGemm for the same b, n and k; null: Gemm packs B itself. Both
  // give the same bits.
  const void* packed_b = nullptr;
};

// Whether this machine has AMX with bfloat16.
bool SupportsBf16();

// `workspace` holds packed blocks: use one per thread; it grows to the largest call.
void Gemm(const GemmCall& call, AlignedBuffer& workspace);

// For several calls with one B, also on several threads: the size of the packed B, or 0 if Gemm
// would not use it. Depends on m, n, k and bf16 only.
size_t PackedFloats(const GemmCall& call);
// Packs part `part` of `parts` of call.b; all parts together make up the packed B. `to` has 64-byte
// alignment and room for PackedFloats, which is not 0.
void PackForGemm(const GemmCall& call, int part, int parts, float* to);

// Gemm with given kernels, for tests.
void Gemm(const Kernels& kernels, const GemmCall& call, AlignedBuffer& workspace);

}  // namespace muster::math
