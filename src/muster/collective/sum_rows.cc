#include "muster/collective/sum_rows.h"

#include <algorithm>

#include "muster/math/vector.h"

namespace muster::collective {

RowList SumRows::Sum(std::span<const RowList> lists) {
  size_t most = 0;
  for (const RowList& list : lists) most += list.rows.size();
  if (rows_.size() < most) {
    rows_.resize(most);
    values_.resize(most * cols_);
  }
  size_ = 0;
  for (const RowList& list : lists) {
    if (size_ == 0) {
      Append(list, cols_);
    } else if (cols_ == 1) {
      Add(list, 1);
    } else {
      Add(list, cols_);
    }
  }
  return {std::span(rows_).first(size_), std::span(values_).first(size_ * cols_)};
}

// Of the first list all rows are new.
void SumRows::Append(const RowList& list, size_t cols) {
  std::copy(list.rows.begin(), list.rows.end(), rows_.begin());
  std::copy_n(list.values.begin(), list.rows.size() * cols, values_.begin());
  for (const int32_t row : list.rows)
    place_[static_cast<size_t>(row)] = static_cast<uint32_t>(size_++);
}

inline void SumRows::Add(const RowList& list, size_t cols) {
  const float* values = list.values.data();
  for (const int32_t row : list.rows) {
    uint32_t& place = place_[static_cast<size_t>(row)];
    if (place < size_ && rows_[place] == row) {
      float* const sum = values_.data() + place * cols;
      if (cols == 1) {
        *sum += *values;
      } else {
        math::AddTo(values, sum, cols);
      }
    } else {
      place = static_cast<uint32_t>(size_);
      rows_[size_] = row;
      std::copy_n(values, cols, values_.data() + size_ * cols);
      ++size_;
    }
    values += cols;
  }
}

}  // namespace muster::collective
