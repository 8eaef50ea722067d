// Rows of a table that a step does not touch, for rules that move them too.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::optim {

// Calls visit(begin, count) for each longest run of rows in [0, table_rows) that `touched` (in any
// order) does not name, in ascending order. Takes a bit a row of memory.
template <typename Visit>
void ForEachUntouchedRun(int64_t table_rows, std::span<const int32_t> touched, const Visit& visit) {
  std::vector<uint64_t> words(static_cast<size_t>(table_rows / 64 + 1));
  for (const int32_t row : touched) words[row / 64] |= uint64_t{1} << row % 64;
  // A bit after the last row ends the last run.
  words[table_rows / 64] |= uint64_t{1} << table_rows % 64;
  int64_t begin = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    for (uint64_t word = words[i]; word != 0; word &= word - 1) {
      const int64_t row = static_cast<int64_t>(i) * 64 + std::countr_zero(word);
      if (row > begin) visit(begin, row - begin);
      begin = row + 1;
    }
  }
}

}  // namespace muster::optim
