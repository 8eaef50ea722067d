// TouchedRows: the rows of a table that a step touches, for rules that also move other rows.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::optim {

// One bit per row, kept from step to step. One owner thread; any thread may read.
class TouchedRows {
 public:
  // The table has `table_rows` rows; `rows` may be in any order.
  void Assign(int64_t table_rows, std::span<const int32_t> rows) {
    words_.assign(static_cast<size_t>(table_rows / 64 + 1), 0);
    for (const int32_t row : rows) words_[row / 64] |= uint64_t{1} << row % 64;
  }

  // Calls visit(begin, count) for each longest run of rows in [first, last) that are not touched,
  // in ascending order.
  template <typename Visit>
  void ForEachUntouchedRun(int64_t first, int64_t last, const Visit& visit) const {
    int64_t begin = first;
    for (int64_t i = first / 64; i * 64 < last; ++i) {
      for (uint64_t word = words_[i]; word != 0; word &= word - 1) {
        const int64_t row = std::min(i * 64 + std::countr_zero(word), last);
        if (row > begin) visit(begin, row - begin);
        begin = std::max(begin, row + 1);
      }
    }
    if (last > begin) visit(begin, last - begin);
  }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace muster::optim
