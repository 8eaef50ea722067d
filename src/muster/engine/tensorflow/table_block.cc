#include "muster/engine/tensorflow/table_block.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster::engine::tensorflow {

size_t TableBlock::Add(std::span<const int32_t> ids) {
  const size_t begin = ids_.size();
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  return begin;
}

void TableBlock::Find(int64_t rows) { finder_.Find(ids_, rows, &distinct_); }

void TableBlock::GatherTo(const VariableView& table, float* block) const {
  const auto bytes = static_cast<size_t>(table.cols) * sizeof(float);
  for (const int32_t row : distinct_.rows) {
    std::memcpy(block, table.data + int64_t{row} * table.cols, bytes);
    block += table.cols;
  }
}

bool TableBlock::Sum(std::span<const int32_t> positions, const float* gradient, int64_t cols,
                     bool with_squares) {
  const auto width = static_cast<size_t>(cols);
  place_.assign(distinct_.rows.size(), -1);
  touched_.clear();
  sums_.clear();
  squares_.clear();
  for (const int32_t position : positions) {
    if (std::cmp_less(position, 0) || std::cmp_greater_equal(position, place_.size())) return false;
    int32_t& place = place_[static_cast<size_t>(position)];
    if (place < 0) {
      place = static_cast<int32_t>(touched_.size());
      touched_.push_back(distinct_.rows[static_cast<size_t>(position)]);
      sums_.insert(sums_.end(), gradient, gradient + cols);
      if (with_squares) {
        for (size_t i = 0; i < width; ++i) squares_.push_back(gradient[i] * gradient[i]);
      }
    } else {
      float* const sum = sums_.data() + static_cast<size_t>(place) * width;
      for (size_t i = 0; i < width; ++i) sum[i] += gradient[i];
      float* const square = squares_.data() + static_cast<size_t>(place) * width;
      for (size_t i = 0; with_squares && i < width; ++i) square[i] += gradient[i] * gradient[i];
    }
    gradient += cols;
  }
  return true;
}

}  // namespace muster::engine::tensorflow
