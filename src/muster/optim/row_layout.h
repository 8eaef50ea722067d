// RowLayout: the layout of one row of a table's gradient.
//
// An optimizer that follows Keras squares each entry of a gradient; an entry is one appearance of
// an id. As entries are summed long before that, the sums of their squares are passed along: a row
// has `cols` sums of its entries, then `cols` sums of their squares. Code that adds such gradients
// up adds rows of width() floats and need not know the layout.
#pragma once

#include <cstdint>
#include <span>

#include "muster/math/vector.h"

namespace muster::optim {

struct RowLayout {
  int64_t cols = 0;
  bool squares = false;

  int64_t width() const { return squares ? 2 * cols : cols; }  // floats
};

// Multiplies all entries by `scale`, and their squares by the square of `scale`.
inline void ScaleEntries(float scale, RowLayout layout, std::span<float> rows) {
  if (!layout.squares) return math::Scale(scale, rows.data(), rows.size());
  const auto cols = static_cast<size_t>(layout.cols);
  for (size_t at = 0; at < rows.size(); at += 2 * cols) {
    math::Scale(scale, rows.data() + at, cols);
    math::Scale(scale * scale, rows.data() + at + cols, cols);
  }
}

// The sum of the squares of all entries; of the rows' sums if the layout has no squares.
inline double SumOfSquaredEntries(RowLayout layout, std::span<const float> rows) {
  if (!layout.squares) return math::SumOfSquares(rows.data(), rows.size());
  const auto cols = static_cast<size_t>(layout.cols);
  double sum = 0;
  for (size_t at = cols; at < rows.size(); at += 2 * cols) {
    for (const float square : rows.subspan(at, cols)) sum += double{square};
  }
  return sum;
}

}  // namespace muster::optim
