#include "muster/collective/sum_rows.h"

#include "muster/math/vector.h"

namespace muster::collective {

RowList SumRows::Sum(std::span<const RowList> lists) {
  rows_.clear();
  values_.clear();
  for (const RowList& list : lists) {
    const float* values = list.values.data();
    for (const int32_t row : list.rows) {
      int32_t& place = place_[static_cast<size_t>(row)];
      if (place == kNone) {
        place = static_cast<int32_t>(rows_.size());
        rows_.push_back(row);
        values_.insert(values_.end(), values, values + cols_);
      } else {
        math::AddTo(values, values_.data() + static_cast<size_t>(place) * cols_, cols_);
      }
      values += cols_;
    }
  }
  for (const int32_t row : rows_) place_[static_cast<size_t>(row)] = kNone;
  return {rows_, values_};
}

}  // namespace muster::collective
