// GrownTable: a table whose rows come as their keys do, or those of its rows whose keys one server
// owns.
//
// A key is known once a step has named it, and has a row from that step on that is number
// `admit_after` of those that named it, if there is room. Then its row is what it is initially, a
// function of seed, variable and key alone, and has that step's gradient applied. Until then its
// gradients count for nothing. A step is an update: how often a batch, or the batches of several
// replicas together, have the key makes no difference.
//
// What a step reads of a key that has no row: its initial row where this step will admit it, else
// zeros. So admit_after 1 computes what a table of all keys would.
//
// Every max(1, expire_after / 8) updates the keys go, with a row or without, that no step named for
// expire_after steps. It depends on the number of the update alone: whoever begins again from a
// checkpoint drops the same keys at the same steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "muster/base/status.h"
#include "muster/ps/variable.h"

namespace muster::ps {

// Some of a table's keys and what belongs to each.
struct GrownEntries {
  std::vector<int64_t> keys = {};
  std::vector<int64_t> counts = {};      // 0: it has a row; else the steps that have named it
  std::vector<int64_t> last_steps = {};  // the last of these
  std::vector<float> values = {};        // of each that has a row: its weights, then slot by slot
};

// One owner thread.
class GrownTable {
 public:
  // `variable` grows and must outlive it. `servers` have equal shares of its capacity.
  GrownTable(const Variable& variable, int servers);

  int64_t rows() const { return static_cast<int64_t>(keys_.size()); }
  int64_t size() const { return rows() + static_cast<int64_t>(waiting_.size()); }
  void Clear();

  // The rows that a step reads: keys.size() x cols.
  void Read(std::span<const int64_t> keys, float* rows) const;
  // Update number `step`, from 0: `keys` are distinct, `gradient` is keys.size() x
  // Variable::gradient_cols().
  void Apply(std::span<const int64_t> keys, std::span<const float> gradient, int64_t step);

  // Up to `count` of the size() entries, from number `first` on; all change their places with Apply
  // and Add.
  GrownEntries Entries(int64_t first, int64_t count) const;
  // Also beyond the capacity. INVALID_ARGUMENT for entries that do not fit the variable or are
  // there already.
  absl::Status Add(const GrownEntries& entries);

 private:
  // A key without a row yet.
  struct Waiting {
    int64_t key = 0, count = 0, last_step = 0;
  };

  bool has_room() const { return rows() < capacity_; }
  int32_t Admit(int64_t key, int64_t step);
  int32_t NewRow(int64_t key, int64_t step);
  void Initialize(int64_t key, float* row) const;
  void RemoveRow(size_t row);
  void RemoveWaiting(size_t place);
  void Expire(int64_t step);

  const Variable& variable_;
  const Variable::Growth growth_;
  const size_t cols_, gradient_cols_;
  const int64_t capacity_;
  // Of each known key its row, or ~place in waiting_.
  absl::flat_hash_map<int64_t, int32_t> places_;
  std::vector<int64_t> keys_, last_steps_;  // by row
  std::vector<float> weights_;
  std::vector<std::vector<float>> slots_;
  std::vector<Waiting> waiting_;
  std::vector<int32_t> touched_;
  std::vector<float> admitted_;  // gradients of touched_, where not all keys have a row
};

// The gradients of one table of several replicas, added up: keys in order of first appearance, sums
// in the order of replicas. One owner thread.
class KeySums {
 public:
  struct List {
    std::span<const int64_t> keys = {};
    std::span<const float> values = {};
  };
  explicit KeySums(int64_t cols) : cols_(static_cast<size_t>(cols)) {}
  // Valid until the next call.
  List Sum(std::span<const List> lists);

 private:
  const size_t cols_;
  absl::flat_hash_map<int64_t, size_t> places_;
  std::vector<int64_t> keys_;
  std::vector<float> values_;
};

}  // namespace muster::ps
