// DynamicTableImage: the contents of a table that grows, as a checkpoint stores them: in the order
// of key_order.h, so that the bytes do not depend on how the keys were spread over servers.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/tables/dynamic_table.h"

namespace muster::tables {

struct DynamicTableImage {
  // By row: weights [rows, cols], and slots of the same shape.
  std::vector<int64_t> keys = {}, last_steps = {};
  std::vector<float> weights = {};
  std::vector<std::vector<float>> slots = {};
  // Keys that have no row yet.
  std::vector<int64_t> waiting_keys = {}, waiting_counts = {}, waiting_last_steps = {};

  int64_t size() const { return static_cast<int64_t>(keys.size() + waiting_keys.size()); }
  // Empties the image, and gives it the slots of `spec`.
  void Clear(const DynamicTableSpec& spec);
  // Appends entries, in any order of keys.
  void Append(const DynamicTableEntries& entries, const DynamicTableSpec& spec);
  // Sorts by IsKeyBefore; call when all entries of the table are appended.
  void Sort(const DynamicTableSpec& spec);
  // Appends entry number i of size() to *entries.
  void CopyTo(int64_t i, const DynamicTableSpec& spec, DynamicTableEntries* entries) const;
  int64_t GetKey(int64_t i) const;
};

// CopyImage copies a table to its image, UseImage copies an image into a table.
void CopyImage(const DynamicTable& table, const DynamicTableSpec& spec, DynamicTableImage* image);
absl::Status UseImage(const DynamicTableImage& image, const DynamicTableSpec& spec,
                      DynamicTable* table);

}  // namespace muster::tables
