// Reads and sums rows of tables by index. Index -1 stands for no row: it reads as zeros, and
// nothing is added to it. Indices are not checked against the table. Thread-safe for distinct
// memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "muster/math/kernels.h"

namespace muster::math {

// Returns one of `rows` that is not in [0, table_rows), or nullopt.
inline std::optional<int32_t> RowOutside(std::span<const int32_t> rows, int64_t table_rows) {
  uint32_t most = 0;  // a negative row becomes a large number
  for (const int32_t row : rows) most = std::max(most, static_cast<uint32_t>(row));
  if (rows.empty() || most < table_rows) return std::nullopt;
  return static_cast<int32_t>(most);
}
// For n rows: out[i * ld + j] = table[indices[i] * cols + j].
inline void GatherRows(const float* table, size_t cols, const int32_t* indices, size_t n,
                       float* out, int64_t ld) {
  ActiveKernels().gather_rows(table, cols, indices, n, out, ld);
}
// For n rows i from 0 and j below cols, sets out[i * ld + j] to f of row first + i's
//   bias[j] + sum over tables t of t.data[(t.ids[row] + 1) * stride + j]
//           + sum over p of inputs[row][columns[p]] kernel[p][j]
// in this order, where f is max(., 0) with `relu`.
inline void SumRows(const RowSum& sum, size_t first, size_t n, size_t cols, float* out,
                    int64_t ld) {
  ActiveKernels().sum_rows(sum, first, n, cols, out, ld);
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
