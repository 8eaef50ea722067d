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
      : cols_(static_cast<size_t>(cols)), place_(static_cast<size_t>(table_rows)) {}

  // The rows in order of first appearance, lists in the order given (that of ranks); where several
  // lists have a row its values are added in that order. Rows must be within the table. Valid until
  // the next call.
  RowList Sum(std::span<const RowList> lists);

 private:
  // `cols` is cols_: known to the compiler where rows are single values, as linear models' are.
  void Append(const RowList& list, size_t cols);
  void Add(const RowList& list, size_t cols);

  const size_t cols_;
  // Of each row of the table in rows_; anything for a row that is not there, so that nothing must
  // be cleared between calls: what it names is another row. (Briggs, Torczon, "An Efficient
  // Representation for Sparse Sets", LOPLAS 1993.)
  std::vector<uint32_t> place_;
  // Room for all lists' rows, of which `size_` are taken.
  std::vector<int32_t> rows_;
  std::vector<float> values_;
  size_t size_ = 0;
};

}  // namespace muster::collective
