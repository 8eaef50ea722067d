// Rows of tables, read and summed by index. An index of -1 is no row: it reads as zeros and takes
// nothing. Indices are not checked against the table. Thread-safe for distinct memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "muster/math/kernels.h"

namespace muster::math {

// out[i * ld + j] = table[indices[i] * cols + j] for n rows.
inline void GatherRows(const float* table, size_t cols, const int32_t* indices, size_t n,
                       float* out, int64_t ld) {
  ActiveKernels().gather_rows(table, cols, indices, n, out, ld);
}
// out[i * ld + j] = sum over tables t of t.data[(t.ids[first + i] + 1) * stride + j] for n rows and
// j below cols, in the order of the tables. `stride` is a multiple of 16.
inline void SumRows(std::span<const RowTable> tables, int64_t stride, size_t first, size_t n,
                    size_t cols, float* out, int64_t ld) {
  ActiveKernels().sum_rows(tables.data(), tables.size(), stride, first, n, cols, out, ld);
}
// out[i] += table[indices[i]].
inline void GatherAdd(const float* table, const int32_t* indices, size_t n, float* out) {
  ActiveKernels().gather_add(table, indices, n, out);
}
// sums[indices[i] * cols + j] += x[i * ld + j]; indices may repeat.
inline void ScatterAddRows(const float* x, int64_t ld, size_t cols, const int32_t* indices,
                           size_t n, float* sums) {
  ActiveKernels().scatter_add_rows(x, ld, cols, indices, n, sums);
}

}  // namespace muster::math
