// Shard: one server's part of all weights and slots, and what gradients do to it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "muster/base/status.h"
#include "muster/optim/touched_rows.h"
#include "muster/ps/grown_table.h"
#include "muster/ps/message.h"
#include "muster/ps/placement.h"

namespace muster::ps {

// A gradient of all variables on this server: of one replica, or the sum of several.
struct Gradient {
  std::span<const uint32_t> given = {};  // by variable: whether `dense` has its gradient
  std::span<const float> dense = {};     // all dense variables and statistics, in their order
  std::vector<TableRows> tables = {};
};

// One owner thread.
class Shard {
 public:
  // All zeros. `variables` and `placement` must outlive it.
  Shard(std::span<const Variable> variables, const Placement& placement, int server);

  // Tables that grow have no row again.
  void ClearKeys();
  // INVALID_ARGUMENT for a slice that this shard does not have.
  absl::Status Load(const Slice& slice);
  absl::StatusOr<std::span<const float>> Fetch(const Slice& slice) const;

  absl::Status LoadKeys(const KeySlice& slice);
  // Up to slice.count entries; no more than a message should have.
  absl::StatusOr<GrownEntries> FetchKeys(const KeySlice& slice) const;

  // INVALID_ARGUMENT for rows, sizes or variables that are none of this shard.
  absl::Status Check(const Gradient& gradient) const;
  absl::Status CheckRows(std::span<const TableRows> tables) const;
  // Appends what a pull brings. Rows have been checked.
  void Read(std::span<const TableRows> tables, std::vector<float>* dense,
            std::vector<float>* rows) const;
  // The optimizers' update number `step`; statistics by their momentum. `gradient` was checked, its
  // rows are distinct. `scales` by variable multiply its entries first; none: all are 1.
  void Apply(const Gradient& gradient, int64_t step, std::span<const float> scales = {});
  // The sum of squares of each variable's gradient, entry by entry where squares come with it
  // (optim/row_layout.h); of statistics 0. `gradient` was checked.
  std::vector<double> Squares(const Gradient& gradient) const;

 private:
  struct Memory {
    std::vector<float> weights;
    std::vector<std::vector<float>> slots;
    std::vector<float*> slot_pointers;
    std::unique_ptr<GrownTable> grown;  // of a table that grows, instead
    std::vector<float>& Of(int slot) {
      return slot < 0 ? weights : slots[static_cast<size_t>(slot)];
    }
  };

  absl::Status CheckSlice(const Slice& slice) const;
  absl::Status CheckKeys(const TableRows& table) const;
  absl::StatusOr<GrownTable*> Grown(uint32_t variable) const;
  std::span<const float> Clipped(const Variable& variable, std::span<const float> gradient);
  std::span<const float> Scaled(float scale, optim::RowLayout layout,
                                std::span<const float> gradient);
  // Calls visit(variable, gradient) for each dense one that is given and on this server.
  template <class Visit>
  void ForEachDense(const Gradient& gradient, Visit visit) const;
  void ApplyDense(size_t variable, std::span<const float> gradient, int64_t step);
  void ApplyTable(size_t variable, const TableRows& table, int64_t step);

  const std::span<const Variable> variables_;
  const Placement& placement_;
  const int server_;
  std::vector<Memory> memory_;
  std::vector<float> clipped_, scaled_;
};

}  // namespace muster::ps
