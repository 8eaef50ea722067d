// SumRows: one table's gradient rows of all ranks, added up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "muster/math/row_numbers.h"

namespace muster::collective {

// Distinct rows of one table, and for each `cols` floats.
struct RowList {
  std::span<const int32_t> rows = {};
  std::span<const float> values = {};
};

// Memory is kept from call to call. One owner thread.
class SumRows {
 public:
  // The rows in order of first appearance, lists in the order given (that of ranks); where several
  // lists have a row its values are added in that order. Rows must be within the table, of which a
  // row has `cols` floats. Valid until the next call. `numbers` may serve other tables meanwhile.
  RowList Sum(std::span<const RowList> lists, int64_t table_rows, int64_t cols,
              math::RowNumbers& numbers);

 private:
  using Pass = math::RowNumbers::Pass;
  // `cols`: known to the compiler where rows are single values, as linear models' are.
  void Append(const RowList& list, size_t cols, Pass* pass);
  void Add(const RowList& list, size_t cols, Pass* pass);

  // Room for all lists' rows.
  std::vector<int32_t> rows_;
  std::vector<float> values_;
};

}  // namespace muster::collective
