// RowNumbers: numbers the distinct rows of a table, from 0 in the order of first appearance.
//
// Memory left from earlier passes never needs to be cleared, as in Briggs, Torczon, "An Efficient
// Representation for Sparse Sets" (LOPLAS 1993). Numbers continue from pass to pass, so that
// whether a row is new depends on a single load and not on the row before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace muster::math {

// Keeps memory between passes: 4 bytes per row of the largest table. One owner thread.
class RowNumbers {
 public:
  // There may be only one Pass at a time for each RowNumbers. Keep it in a local variable, so that
  // the compiler keeps it in registers.
  class Pass {
   public:
    // `row` is in [0, table_rows).
    uint32_t GetNumber(int32_t row) {
      uint32_t& mark = marks_[static_cast<size_t>(row)];
      // Whether a row is new is not predictable. Of a conditional expression the compiler makes a
      // branch.
      const auto is_new = static_cast<uint32_t>(mark < first_);
      const uint32_t value = mark ^ ((mark ^ next_) & (0 - is_new));
      mark = value;
      next_ += is_new;
      return value - first_;
    }
    // The number of distinct rows so far; all numbers are below it.
    uint32_t count() const { return next_ - first_; }

   private:
    friend class RowNumbers;
    Pass(uint32_t* marks, uint32_t first) : marks_(marks), first_(first), next_(first) {}
    uint32_t* marks_;
    uint32_t first_, next_;
  };

  // Begins a pass over at most `most` rows. The table's size may differ from pass to pass.
  Pass Begin(int64_t table_rows, size_t most) {
    if (marks_.size() < static_cast<size_t>(table_rows)) {
      marks_.resize(static_cast<size_t>(table_rows));
    }
    if (most >= std::numeric_limits<uint32_t>::max() - next_) {
      std::fill(marks_.begin(), marks_.end(), 0);
      next_ = 1;
    }
    return {marks_.data(), next_};
  }
  void End(const Pass& pass) { next_ = pass.next_; }

 private:
  // by row: its number plus the value of next_ at the beginning of the pass
  std::vector<uint32_t> marks_;
  uint32_t next_ = 1;
};

}  // namespace muster::math
