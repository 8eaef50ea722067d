// SumRows: adds up one table's gradient rows of all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "muster/math/row_numbers.h"

namespace muster::collective {

// Distinct rows of one table, with `cols` floats for each row.
struct RowList {
  std::span<const int32_t> rows = {};
  std::span<const float> values = {};
};

// Memory is kept from call to call. One owner thread.
class SumRows {
 public:
  // The sum of the lists, which are given in the order of ranks: rows are in order of first
  // appearance, and if several lists have a row, its values are added in the order of the lists.
  // Rows must be within the table, whose rows have `cols` floats. The result is valid until the
  // next call. Between calls `numbers` may be used for other tables.
  RowList Sum(std::span<const RowList> lists, int64_t table_rows, int64_t cols,
              math::RowNumbers& numbers);

 private:
  using Pass = math::RowNumbers::Pass;
  // Both are inlined for a constant `cols` of 1, as linear models have.
  void Append(const RowList& list, size_t cols, Pass* pass);
  void Add(const RowList& list, size_t cols, Pass* pass);

  // Both have room for the rows of all lists.
  std::vector<int32_t> rows_;
  std::vector<float> values_;
};

}  // namespace muster::collective
