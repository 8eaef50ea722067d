// TableBlocks: the rows of tables that one batch touches, and the batch with its ids renumbered
// into them: what an engine is given where no replica has whole tables, or where tables grow and
// have keys instead of numbered rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "muster/base/status.h"
#include "muster/engine/distinct_rows.h"
#include "muster/engine/engine.h"

namespace muster::train {

// Tables that share an id list share their block's numbers. Memory is kept from batch to batch. One
// owner thread.
class TableBlocks {
 public:
  enum class Which { kAll, kGrown };
  // Of all tables, or of those alone that grow: other ids stay as they are. UNIMPLEMENTED where
  // tables that share a list have different numbers of rows.
  static absl::StatusOr<TableBlocks> Create(const engine::Engine& engine,
                                            Which which = Which::kAll);

  // OUT_OF_RANGE for an id outside its table.
  absl::Status Take(const features::FeatureBatch& batch);

  // Valid until the next Take. Row i of a table's block is row rows(table)[i] of the table, or,
  // where it grows, that of keys(table)[i], in order of first appearance.
  const features::FeatureBatch& batch() const { return batch_; }
  std::span<const int32_t> rows(int table) const {
    return groups_[static_cast<size_t>(group_of_[static_cast<size_t>(table)])].distinct.rows;
  }
  std::span<const int64_t> keys(int table) const {
    return groups_[static_cast<size_t>(group_of_[static_cast<size_t>(table)])].keys;
  }
  std::span<const int> tables() const { return tables_; }  // their variables, in ascending order

 private:
  // Tables and lists that are joined.
  struct Group {
    int64_t table_rows = 0;
    std::vector<int> lists = {};
    engine::DistinctRows distinct = {};
    // Instead, of tables that grow.
    bool grows = false;
    absl::flat_hash_map<int64_t, int32_t> place_of_key = {};
    std::vector<int64_t> keys = {};
  };

  // Of lists_.
  absl::Status Renumber(Group& group);
  absl::Status RenumberKeys(Group& group);

  std::vector<int> tables_;
  std::vector<int> group_of_;  // by variable; -1: no table
  std::vector<Group> groups_;
  features::FeatureBatch batch_;
  // Of the group in hand.
  std::vector<features::IdList*> lists_;  // in batch_
  engine::DistinctRowsFinder finder_;
  std::vector<int32_t> joined_;
};

}  // namespace muster::train
