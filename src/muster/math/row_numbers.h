// RowNumbers: numbers the distinct rows of a table, from 0 in the order of first appearance.
//
// What earlier passes left in memory never needs to be cleared, as in Briggs, Torczon, "An
// Efficient Representation for Sparse Sets" (LOPLAS 1993); here by numbers that go on from pass to
// pass, so that whether a row is new hangs on one load alone and not on the row before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace muster::math {

// Memory, 4 bytes a row of the largest table, is kept between passes. One owner thread.
class RowNumbers {
 public:
  // One at a time of a RowNumbers, in a variable of its own: the compiler then keeps it in
  // registers.
  class Pass {
   public:
    // `row` is in [0, table_rows).
    uint32_t NumberOf(int32_t row) {
      uint32_t& mark = marks_[static_cast<size_t>(row)];
      const bool is_new = mark < first_;
      mark = is_new ? next_ : mark;  // cannot be predicted: no branch
      const uint32_t number = mark - first_;
      next_ += static_cast<uint32_t>(is_new);
      return number;
    }
    // Of the rows so far, which are numbered below it.
    uint32_t count() const { return next_ - first_; }

   private:
    friend class RowNumbers;
    Pass(uint32_t* marks, uint32_t first) : marks_(marks), first_(first), next_(first) {}
    uint32_t* marks_;
    uint32_t first_, next_;
  };

  // Over at most `most` rows, of a table of any size from call to call.
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
  std::vector<uint32_t> marks_;  // by row: its number more than next_ was at the pass's beginning
  uint32_t next_ = 1;
};

}  // namespace muster::math
