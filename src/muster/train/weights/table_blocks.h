// TableBlocks: finds the rows of tables that one batch touches, and renumbers the batch's ids into
// blocks of these rows. An engine gets such blocks if replicas do not have whole tables, or if
// tables grow and have keys instead of numbered rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "muster/base/status.h"
#include "muster/engine/distinct_rows.h"
#include "muster/engine/engine.h"

namespace muster::train {

// Tables that share an id list have the same numbers in their blocks. Memory is kept from batch to
// batch. One owner thread.
class TableBlocks {
 public:
  enum class Which { kAll, kDynamic };
  // Blocks of all tables, or only of those that grow: ids of other tables then stay unchanged.
  // UNIMPLEMENTED if tables that share an id list have different numbers of rows.
  static absl::StatusOr<TableBlocks> Create(const engine::Engine& engine,
                                            Which which = Which::kAll);

  // Renumbers a batch. OUT_OF_RANGE for an id outside its table; INVALID_ARGUMENT for a list of a
  // table that grows if its numbers of keys and ids differ.
  absl::Status Renumber(const features::FeatureBatch& batch);

  // Valid until the next Renumber. Row i of a table's block is row rows(table)[i] of the table or,
  // if the table grows, the row of keys(table)[i]. Rows are in order of first appearance.
  const features::FeatureBatch& batch() const { return batch_; }
  std::span<const int32_t> rows(int table) const {
    return groups_[static_cast<size_t>(group_of_[static_cast<size_t>(table)])].distinct.rows;
  }
  std::span<const int64_t> keys(int table) const {
    return groups_[static_cast<size_t>(group_of_[static_cast<size_t>(table)])].keys;
  }
  std::span<const int> tables() const { return tables_; }  // variables of the tables, ascending

 private:
  // Tables that share id lists, and those lists.
  struct Group {
    int64_t table_rows = 0;
    std::vector<int> lists = {};
    engine::DistinctRows distinct = {};
    // For tables that grow, instead of `distinct`.
    bool grows = false;
    absl::flat_hash_map<int64_t, int32_t> place_of_key = {};
    std::vector<int64_t> keys = {};
  };

  // Both renumber the ids of lists_.
  absl::Status RenumberIds(Group& group);
  absl::Status RenumberKeys(Group& group);

  std::vector<int> tables_;
  std::vector<int> group_of_;  // by variable; -1: no table
  std::vector<Group> groups_;
  features::FeatureBatch batch_;
  // Used for the group that Renumber is working on.
  std::vector<features::IdList*> lists_;  // point into batch_
  engine::DistinctRowsFinder finder_;
  std::vector<int32_t> joined_;
};

}  // namespace muster::train
