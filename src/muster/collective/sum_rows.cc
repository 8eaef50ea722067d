#include "muster/collective/sum_rows.h"

#include <algorithm>

#include "muster/math/vector.h"

namespace muster::collective {

RowList SumRows::Sum(std::span<const RowList> lists, int64_t table_rows, int64_t cols,
                     math::RowNumbers& numbers) {
  const auto width = static_cast<size_t>(cols);
  size_t most = 0;
  for (const RowList& list : lists) most += list.rows.size();
  if (rows_.size() < most) rows_.resize(most);
  if (values_.size() < most * width) values_.resize(most * width);
  Pass pass = numbers.Begin(table_rows, most);
  for (const RowList& list : lists) {
    if (pass.count() == 0) {
      Append(list, width, &pass);
    } else if (width == 1) {
      Add(list, 1, &pass);
    } else {
      Add(list, width, &pass);
    }
  }
  numbers.End(pass);
  return {std::span(rows_).first(pass.count()), std::span(values_).first(pass.count() * width)};
}

// Adds the first list, all of whose rows are new.
void SumRows::Append(const RowList& list, size_t cols, Pass* pass) {
  std::copy(list.rows.begin(), list.rows.end(), rows_.begin());
  std::copy_n(list.values.begin(), list.rows.size() * cols, values_.begin());
  Pass numbers = *pass;
  for (const int32_t row : list.rows) numbers.GetNumber(row);
  *pass = numbers;
}

inline void SumRows::Add(const RowList& list, size_t cols, Pass* pass) {
  const float* values = list.values.data();
  Pass numbers = *pass;
  for (const int32_t row : list.rows) {
    const uint32_t before = numbers.count();
    const uint32_t number = numbers.GetNumber(row);
    float* const sum = values_.data() + number * cols;
    if (number < before) {
      if (cols == 1) {
        *sum += *values;
      } else {
        math::AddTo(values, sum, cols);
      }
    } else {
      rows_[number] = row;
      std::copy_n(values, cols, sum);
    }
    values += cols;
  }
  *pass = numbers;
}

}  // namespace muster::collective
