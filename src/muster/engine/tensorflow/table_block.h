// The rows of a table that a batch names, as one block that a function reads; and the gradients of
// its entries summed by row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/engine/distinct_rows.h"
#include "muster/engine/engine.h"

namespace muster::engine::tensorflow {

// Keeps memory between batches; one owner thread. Nothing here grows with the table.
class TableBlock {
 public:
  // Begins a batch.
  void Clear() { ids_.clear(); }
  // Appends the ids of a lookup, which are in [0, rows of the table). Returns where they begin.
  size_t Add(std::span<const int32_t> ids);
  // Called after all lookups were added: renumbers their ids. `rows`: of the table.
  void Find(int64_t rows);

  // Positions in the block, of all lookups in the order of Add.
  std::span<const int32_t> positions() const { return distinct_.positions; }
  // For each row of the block its row in the table, in order of first appearance.
  std::span<const int32_t> rows() const { return distinct_.rows; }
  // Writes rows().size() x cols floats.
  void GatherTo(const VariableView& table, float* block) const;

  // How entries are added up.
  struct Entries {
    int64_t cols = 0;
    bool with_squares = false;  // a row's sums are followed by the sums of its entries' squares
    float clip = 0;             // > 0: each entry's elements are cut to [-clip, clip] first
    bool apart = false;         // no sums: touched() and sums() hold the entries themselves
  };
  // Sums entries of the same row: entry i, at `gradient` + i * cols, belongs to the block's row
  // positions[i]. False when a position is not in the block.
  bool Sum(std::span<const int32_t> positions, const float* gradient, const Entries& entries);
  // The rows, in order of first appearance among the entries, or one for each entry.
  std::span<const int32_t> touched() const { return touched_; }
  // touched().size() x cols, or 2 cols with squares.
  std::span<const float> sums() const { return sums_; }

 private:
  bool Keep(std::span<const int32_t> positions, const float* gradient, int64_t cols);

  std::vector<int32_t> ids_;
  DistinctRowsFinder finder_;
  DistinctRows distinct_;
  std::vector<int32_t> place_;  // for each row of the block its place in touched_; -1: none
  std::vector<int32_t> touched_;
  std::vector<float> sums_;
  std::vector<float> cut_;  // one clipped entry
};

}  // namespace muster::engine::tensorflow
