// ServerWeights: one server's part of all weights and slots, to which it applies gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "muster/base/parallel.h"
#include "muster/base/status.h"
#include "muster/optim/touched_rows.h"
#include "muster/ps/wire/message.h"
#include "muster/ps/wire/placement.h"
#include "muster/tables/dynamic_table.h"

namespace muster::ps {

// The gradients of all variables on this server: one replica's, or the sum of several replicas'.
struct Gradient {
  std::span<const uint32_t> given = {};  // by variable: not 0 if `dense` has its gradient
  std::span<const float> dense = {};     // all dense variables and statistics, in their order
  std::vector<TableRows> tables = {};
};

// One owner thread. It has threads of its own, among which it divides the rows that a large request
// reads or changes, and large dense variables. No byte depends on how many they are.
class ServerWeights {
 public:
  // Makes an object whose weights and slots are all zero. `variables` and `placement` must outlive
  // it. `threads`: with the owner's.
  ServerWeights(std::span<const Variable> variables, const Placement& placement, int server,
                int threads = 1);

  // Empties the tables that grow.
  void ClearKeys();
  // Both return INVALID_ARGUMENT for a slice that this server does not have.
  absl::Status Load(const Slice& slice);
  absl::StatusOr<std::span<const float>> Fetch(const Slice& slice) const;

  // Slices of a table that grows are of the rows that it has now.
  absl::Status LoadKeys(const KeySlice& slice);
  // Returns up to slice.count entries, from number slice.first on.
  absl::StatusOr<tables::DynamicTableEntries> FetchKeys(const KeySlice& slice) const;
  // INVALID_ARGUMENT if the variable is not a table that grows.
  absl::StatusOr<const tables::DynamicTable*> FindDynamicTable(uint32_t variable) const {
    return Dynamic(variable);
  }

  // INVALID_ARGUMENT for rows, keys, sizes or variables that this server does not have.
  absl::Status Check(const Gradient& gradient) const;
  absl::Status CheckRows(std::span<const TableRows> tables) const;
  // Replaces *dense and *rows by the values that a pull returns. `tables` must have passed
  // CheckRows.
  void Read(std::span<const TableRows> tables, std::vector<float>* dense,
            std::vector<float>* rows) const;
  // Makes the optimizers' update number `step`, and moves statistics by their momentum. `gradient`
  // must have passed Check, and its rows must be distinct. Gradients are first multiplied by
  // `scales`, one factor for each variable; empty: all are 1.
  void Apply(const Gradient& gradient, int64_t step, std::span<const float> scales = {});
  // The sum of squares of each variable's gradient, over entries if squares come with it
  // (optim/row_layout.h); 0 for statistics. `gradient` must have passed Check.
  std::vector<double> Squares(const Gradient& gradient) const;

 private:
  struct Memory {
    std::vector<float> weights;
    std::vector<std::vector<float>> slots;
    std::vector<float*> slot_pointers;
    // Used instead of the vectors if the table grows.
    std::unique_ptr<tables::DynamicTable> dynamic_table;
    std::span<float> Of(int slot) {
      if (dynamic_table != nullptr) return dynamic_table->mutable_values(slot);
      return slot < 0 ? weights : slots[static_cast<size_t>(slot)];
    }
    std::span<const float> Of(int slot) const {
      if (dynamic_table != nullptr) return dynamic_table->values(slot);
      return slot < 0 ? weights : slots[static_cast<size_t>(slot)];
    }
  };

  // Calls run(first, last) for ranges that together are [0, count), on all threads at once if the
  // `floats` of all of them are worth that. Ranges begin at multiples of `grain`.
  template <class Run>
  void Divide(size_t count, size_t floats, size_t grain, const Run& run) const;
  absl::Status CheckSlice(const Slice& slice) const;
  absl::Status CheckKeys(const TableRows& table) const;
  absl::StatusOr<tables::DynamicTable*> Dynamic(uint32_t variable) const;
  std::span<const float> Clipped(const Variable& variable, std::span<const float> gradient);
  std::span<const float> Scaled(float scale, optim::RowLayout layout,
                                std::span<const float> gradient);
  // Calls visit(variable, gradient) for each dense gradient that is given, of variables that have a
  // part on this server.
  template <class Visit>
  void ForEachDense(const Gradient& gradient, Visit visit) const;
  void ApplyDense(size_t variable, std::span<const float> gradient, int64_t step);
  void ApplyTable(size_t variable, const TableRows& table, int64_t step);

  const std::span<const Variable> variables_;
  const Placement& placement_;
  const int server_;
  std::vector<Memory> memory_;
  std::vector<float> clipped_, scaled_;
  mutable ThreadCrew crew_;
};

}  // namespace muster::ps
