#include "muster/engine/tensorflow/table_block.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "muster/math/vector.h"

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

bool TableBlock::Keep(std::span<const int32_t> positions, const float* gradient, int64_t cols) {
  touched_.clear();
  for (const int32_t position : positions) {
    if (std::cmp_less(position, 0) || std::cmp_greater_equal(position, distinct_.rows.size())) {
      return false;
    }
    touched_.push_back(distinct_.rows[static_cast<size_t>(position)]);
  }
  sums_.assign(gradient, gradient + positions.size() * static_cast<size_t>(cols));
  return true;
}

bool TableBlock::Sum(std::span<const int32_t> positions, const float* gradient,
                     const Entries& entries) {
  if (entries.apart) return Keep(positions, gradient, entries.cols);
  const auto cols = static_cast<size_t>(entries.cols);
  const size_t width = entries.with_squares ? 2 * cols : cols;
  place_.assign(distinct_.rows.size(), -1);
  touched_.clear();
  sums_.clear();
  for (const int32_t position : positions) {
    if (std::cmp_less(position, 0) || std::cmp_greater_equal(position, place_.size())) return false;
    int32_t& place = place_[static_cast<size_t>(position)];
    if (place < 0) {
      place = static_cast<int32_t>(touched_.size());
      touched_.push_back(distinct_.rows[static_cast<size_t>(position)]);
      sums_.resize(sums_.size() + width);
    }
    const float* entry = gradient;
    if (entries.clip > 0) {
      cut_.assign(gradient, gradient + cols);
      math::Clamp(entries.clip, cut_.data(), cols);
      entry = cut_.data();
    }
    float* const sum = sums_.data() + static_cast<size_t>(place) * width;
    for (size_t i = 0; i < cols; ++i) sum[i] += entry[i];
    for (size_t i = cols; i < width; ++i) sum[i] += entry[i - cols] * entry[i - cols];
    gradient += cols;
  }
  return true;
}

}  // namespace muster::engine::tensorflow
