// ReduceRows: sums the gradient rows of several tables over the ranks of a large group. Each rank
// owns a part of each table's rows and gets their sums alone, so that a row is added up on its way
// and not sent to everyone.
//
// It goes by the levels of rank_levels.h, as Renggli et al., "SparCML: High-Performance Sparse
// Communication for Machine Learning" (SC 2019), splits and adds sparse vectors by recursive
// halving. A row's owner is the seat that its number gives in the levels' radices, its first digit
// first: rows with near numbers have different owners.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "muster/collective/group.h"
#include "muster/collective/rank_levels.h"
#include "muster/collective/sum_rows.h"
#include "muster/math/row_numbers.h"

namespace muster::collective {

struct RowTable {
  int64_t rows = 0;
  int64_t cols = 0;  // floats of a gradient's row
};

// Memory is kept from call to call. One owner thread.
class ReduceRows {
 public:
  // `lists`: this rank's rows of each table. Each is replaced by the sums over all ranks of those
  // rows that this rank owns, in an order that depends on the lists and the number of ranks only;
  // they are valid until the next call. Ranks that are spare (rank_levels.h) own none. Between
  // calls `numbers` may be used for others.
  absl::Status Reduce(Group& group, std::span<const RowTable> tables, std::span<RowList> lists,
                      math::RowNumbers& numbers);

 private:
  using Bytes = std::vector<std::byte>;
  using Lists = std::vector<std::vector<RowList>>;  // by table, in the order of addition

  absl::Status SumLevel(Group& group, const RankLevels& levels, const RankLevels::Level& level);
  // Writes the rows whose digit at the level is this one; a radix of 1 has all.
  void Write(const RankLevels::Level& level, int digit, Bytes* bytes) const;
  uint64_t GetMost() const;  // bytes of all rows
  // With a spare rank: the size first, then the lists.
  absl::Status Send(Group& group, int to, const Bytes& out) const;
  absl::Status Receive(Group& group, int from, Bytes* in) const;
  absl::Status Resize(Group& group, int from, uint64_t announced, Bytes* in) const;
  absl::Status Read(Group& group, int from, const Bytes& bytes, Lists* lists) const;
  void Sum(const Lists& lists);

  std::span<const RowTable> tables_;
  std::span<RowList> lists_;
  math::RowNumbers* numbers_ = nullptr;
  std::vector<Bytes> out_, in_;  // by digit
  Bytes spare_;
  std::vector<SumRows> sums_;  // by table
};

}  // namespace muster::collective
