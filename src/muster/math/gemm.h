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

// C[m,n] = A[m,k] B[k,n], or C += A B. Element (i, p) of A lies at a[i * a_row + p * a_col]; a
// row-major matrix has a_col = 1, a transposed one a_row = 1. B is row-major with ldb floats per
// row; with b_transposed B is stored as an [n,k] matrix. C must not overlap A or B.
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
  bool relu = false;            // then C = max(C, 0)
  const float* mask = nullptr;  // [m,n]: then C = 0 where mask <= 0
  int64_t ldmask = 0;
  // A and B are rounded to bfloat16 (to nearest even); sums and everything else are float. Used
  // only if it is faster, which depends on m, n and k only. Needs SupportsBf16(); a_row or a_col
  // must be 1. Numbers below 2^-126 count as 0.
  bool bf16 = false;
  // The complete result of PackForGemm for the same b, n and k; null: Gemm packs B itself. Both
  // ways give the same bits.
  const void* packed_b = nullptr;
};

// Whether this machine has AMX with bfloat16.
bool SupportsBf16();

// `workspace` holds packed blocks and grows to the largest call; use one per thread.
void Gemm(const GemmCall& call, AlignedBuffer& workspace);

// For several calls with one B, also on several threads: returns the size of the packed B, or 0 if
// Gemm would not use it. The size depends on m, n, k and bf16 only.
size_t PackedFloats(const GemmCall& call);
// Packs part `part` of `parts` of call.b; all parts together make up the packed B. `to` is 64-byte
// aligned and has room for PackedFloats, which must not be 0.
void PackForGemm(const GemmCall& call, int part, int parts, float* to);

// Gemm with the given kernels, for tests.
void Gemm(const Kernels& kernels, const GemmCall& call, AlignedBuffer& workspace);

}  // namespace muster::math
