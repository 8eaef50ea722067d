// The rows of a table that a batch names, as one block that a function reads; and the sums by row
// of its entries' gradients.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/engine/distinct_rows.h"
#include "muster/engine/engine.h"

namespace muster::engine::tensorflow {

// Keeps memory between batches, none of which grows with the table. One owner thread.
class TableBlock {
 public:
  // Begins a batch.
  void Clear() { ids_.clear(); }
  // Appends the ids of a lookup, which are in [0, rows of the table). Returns where they begin.
  size_t Add(std::span<const int32_t> ids);
  // Called after all lookups were added: renumbers their ids. `rows` is the number of rows of the
  // table.
  void Find(int64_t rows);

  // Row numbers in the block, for all lookups in the order of Add.
  std::span<const int32_t> positions() const { return distinct_.positions; }
  // By row of the block: its row in the table. In order of first appearance.
  std::span<const int32_t> rows() const { return distinct_.rows; }
  // Writes rows().size() x cols floats.
  void GatherTo(const VariableView& table, float* block) const;

  // How the gradients of entries are added up.
  struct Entries {
    int64_t cols = 0;
    bool with_squares = false;  // a row's sums are followed by the sums of its entries' squares
    float clip = 0;             // > 0: each entry's elements are first cut to [-clip, clip]
    // nothing is summed: touched() and sums() hold the entries themselves
    bool apart = false;
  };
  // Sums the entries of each row: entry i, at `gradient` + i * cols, belongs to the block's row
  // positions[i]. False if a position is not in the block.
  bool Sum(std::span<const int32_t> positions, const float* gradient, const Entries& entries);
  // The rows, in order of first appearance among the entries; with `apart`, one for each entry.
  std::span<const int32_t> touched() const { return touched_; }
  // touched().size() x cols, or 2 cols with squares.
  std::span<const float> sums() const { return sums_; }

 private:
  bool Keep(std::span<const int32_t> positions, const float* gradient, int64_t cols);

  std::vector<int32_t> ids_;
  DistinctRowsFinder finder_;
  DistinctRows distinct_;
  std::vector<int32_t> place_;  // by row of the block: its index in touched_; -1: none
  std::vector<int32_t> touched_;
  std::vector<float> sums_;
  std::vector<float> cut_;  // one clipped entry
};

}  // namespace muster::engine::tensorflow
