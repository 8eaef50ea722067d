// TableBlocks: the rows of tables that one batch touches, and the batch with its ids renumbered
// into them: what an engine is given where no replica has whole tables.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/engine.h"

namespace muster::train {

// Tables that share an id list share their block's numbers. Memory is kept from batch to batch: 4
// bytes a row of the largest such table. One owner thread.
class TableBlocks {
 public:
  // UNIMPLEMENTED where tables that share a list have different numbers of rows.
  static absl::StatusOr<TableBlocks> Create(const engine::Engine& engine);

  // OUT_OF_RANGE for an id outside its table.
  absl::Status Take(const features::FeatureBatch& batch);

  // Valid until the next Take. Row i of a table's block is row rows(table)[i] of the table, in
  // order of first appearance.
  const features::FeatureBatch& batch() const { return batch_; }
  std::span<const int32_t> rows(int table) const {
    return groups_[static_cast<size_t>(group_of_[static_cast<size_t>(table)])].rows;
  }
  std::span<const int> tables() const { return tables_; }  // their variables, in ascending order

 private:
  // Tables and lists that are joined.
  struct Group {
    int64_t table_rows = 0;
    std::vector<int> lists = {};
    std::vector<int32_t> place = {};  // of each row of the table in `rows`, or -1
    std::vector<int32_t> rows = {};
  };

  absl::Status Renumber(Group& group, std::vector<int32_t>* ids);

  std::vector<int> tables_;
  std::vector<int> group_of_;  // by variable; -1: no table
  std::vector<Group> groups_;
  features::FeatureBatch batch_;
};

}  // namespace muster::train
