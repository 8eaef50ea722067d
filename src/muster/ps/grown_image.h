// GrownImage: all of a table that grows, as a checkpoint has it: sorted by key, so that the same
// table gives the same bytes whoever had which part of it.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/ps/grown_table.h"

namespace muster::ps {

struct GrownImage {
  // By row: weights [rows, cols], and each slot as much.
  std::vector<int64_t> keys = {}, last_steps = {};
  std::vector<float> weights = {};
  std::vector<std::vector<float>> slots = {};
  // Keys that have no row yet.
  std::vector<int64_t> waiting_keys = {}, waiting_counts = {}, waiting_last_steps = {};

  int64_t size() const { return static_cast<int64_t>(keys.size() + waiting_keys.size()); }
  // Empties it, for a table of this variable.
  void Clear(const Variable& variable);
  // Behind what is there.
  void Append(const GrownEntries& entries, const Variable& variable);
  // Of one server, when all of it is here.
  void Sort(const Variable& variable);
  // Entry number i of size() goes behind *entries.
  void CopyTo(int64_t i, const Variable& variable, GrownEntries* entries) const;
  int64_t KeyOf(int64_t i) const;
};

// Between a table and its image in one process.
void TakeImage(const GrownTable& table, const Variable& variable, GrownImage* image);
absl::Status UseImage(const GrownImage& image, const Variable& variable, GrownTable* table);

}  // namespace muster::ps
