// DynamicTable: a table that grows: it gets a row for a key when the key has appeared. It has all
// keys of its variable or, on a parameter server, those that this server owns.
//
// A key is known once a step has named it, unless the table is then full. The key gets a row at the
// `admit_after`-th step that names it, if there is room: an initial row, which is a function of
// seed, variable and key alone, to which that step's gradient is applied. Gradients of earlier
// steps are dropped. A step is an update: it counts once, however often its batch, or the batches
// of several replicas together, contain the key.
//
// For a key without a row a step reads the initial row if this step will admit the key, else zeros.
// So a table with admit_after 1 computes the same as a table that has all keys from the start.
//
// Every max(1, expire_after / 8) updates, keys that no step has named for expire_after steps are
// removed, with or without a row. This depends on the number of the update alone: a training that
// continues from a checkpoint removes the same keys at the same steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "muster/base/status.h"
#include "muster/tables/dynamic_table_spec.h"

namespace muster::tables {

// Some keys of a table, with their counts, last steps and values.
struct DynamicTableEntries {
  std::vector<int64_t> keys = {};
  std::vector<int64_t> counts = {};      // 0: the key has a row; else how many steps have named it
  std::vector<int64_t> last_steps = {};  // the last step that named the key
  std::vector<float> values = {};        // of each key with a row: its weights, then slot by slot
};

// A key without a row yet.
struct WaitingKey {
  int64_t key = 0, count = 0, last_step = 0;
};

// One owner thread.
class DynamicTable {
 public:
  // The table has an equal share, one of `shares`, of the variable's capacity.
  DynamicTable(const DynamicTableSpec& spec, int shares);

  int64_t rows() const { return static_cast<int64_t>(keys_.size()); }
  int64_t size() const { return rows() + static_cast<int64_t>(waiting_.size()); }
  void Clear();

  // Fills `rows` with the rows that a step reads: keys.size() x cols.
  void Read(std::span<const int64_t> keys, float* rows) const;
  // Update number `step`, from 0: `keys` are distinct, `gradient` is keys.size() x the width of
  // DynamicTableSpec::gradient_layout().
  void Apply(std::span<const int64_t> keys, std::span<const float> gradient, int64_t step);

  // Up to `count` of the size() entries, from number `first` on. Apply and Add change the numbers
  // of entries.
  DynamicTableEntries Entries(int64_t first, int64_t count) const;
  // By row, until Apply, Add or Clear: its key, the last step that named it, and, row after row,
  // its weights (slot -1) or one of its slots.
  std::span<const int64_t> keys() const { return keys_; }
  std::span<const int64_t> last_steps() const { return last_steps_; }
  std::span<const float> values(int slot) const {
    return slot < 0 ? weights_ : slots_[static_cast<size_t>(slot)];
  }
  std::span<float> mutable_values(int slot) {
    return slot < 0 ? weights_ : slots_[static_cast<size_t>(slot)];
  }
  std::span<const WaitingKey> waiting() const { return waiting_; }
  // How often Apply, Add or Clear was called.
  uint64_t changes() const { return changes_; }
  // Adds entries, even beyond the capacity. INVALID_ARGUMENT for entries that do not fit the
  // spec or whose key is already in the table.
  absl::Status Add(const DynamicTableEntries& entries);

 private:
  bool has_room() const { return rows() < capacity_; }
  int32_t Admit(int64_t key, int64_t step);
  int32_t NewRow(int64_t key, int64_t step);
  void Initialize(int64_t key, float* row) const;
  void RemoveRow(size_t row);
  void RemoveWaiting(size_t place);
  void Expire(int64_t step);

  const DynamicTableSpec spec_;
  const size_t cols_, gradient_cols_;
  const int64_t capacity_;
  // The row of each known key or, if it has none, ~(its index in waiting_).
  absl::flat_hash_map<int64_t, int32_t> places_;
  std::vector<int64_t> keys_, last_steps_;  // by row
  std::vector<float> weights_;
  std::vector<std::vector<float>> slots_;
  std::vector<WaitingKey> waiting_;
  uint64_t changes_ = 0;
  std::vector<int32_t> touched_;
  std::vector<float> admitted_;  // gradients of touched_; used if some keys have no row
};

}  // namespace muster::tables
