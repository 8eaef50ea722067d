// Shard: one server's part of all weights and slots, and what gradients do to it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "muster/base/status.h"
#include "muster/optim/touched_rows.h"
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

  // INVALID_ARGUMENT for a slice that this shard does not have.
  absl::Status Load(const Slice& slice);
  absl::StatusOr<std::span<const float>> Fetch(const Slice& slice) const;

  // INVALID_ARGUMENT for rows, sizes or variables that are none of this shard.
  absl::Status Check(const Gradient& gradient) const;
  absl::Status CheckRows(std::span<const TableRows> tables) const;
  // Appends what a pull brings. Rows have been checked.
  void Read(std::span<const TableRows> tables, std::vector<float>* dense,
            std::vector<float>* rows) const;
  // The optimizers' update number `step`; statistics by their momentum. `gradient` was checked, its
  // rows are distinct.
  void Apply(const Gradient& gradient, int64_t step);

 private:
  struct Memory {
    std::vector<float> weights;
    std::vector<std::vector<float>> slots;
    std::vector<float*> slot_pointers;
    std::vector<float>& Of(int slot) {
      return slot < 0 ? weights : slots[static_cast<size_t>(slot)];
    }
  };

  absl::Status CheckSlice(const Slice& slice) const;
  std::span<const float> Clipped(const Variable& variable, std::span<const float> gradient);
  void ApplyDense(size_t variable, std::span<const float> gradient, int64_t step);
  void ApplyTable(size_t variable, const TableRows& table, int64_t step);

  const std::span<const Variable> variables_;
  const Placement& placement_;
  const int server_;
  std::vector<Memory> memory_;
  std::vector<float> clipped_;
};

}  // namespace muster::ps
