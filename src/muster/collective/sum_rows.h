// SumRows: one table's gradient rows of all ranks, added up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::collective {

// Distinct rows of one table, and for each `cols` floats.
struct RowList {
  std::span<const int32_t> rows = {};
  std::span<const float> values = {};
};

// Memory is kept from call to call. One owner thread.
class SumRows {
 public:
  SumRows(int64_t table_rows, int64_t cols)
      : cols_(static_cast<size_t>(cols)), place_(static_cast<size_t>(table_rows), kNone) {}

  // The rows in order of first appearance, lists in the order given (that of ranks); where several
  // lists have a row its values are added in that order. Rows must be within the table. Valid until
  // the next call.
  RowList Sum(std::span<const RowList> lists);

 private:
  static constexpr int32_t kNone = -1;

  const size_t cols_;
  std::vector<int32_t> place_;  // of each row of the table in rows_
  std::vector<int32_t> rows_;
  std::vector<float> values_;
};

}  // namespace muster::collective
