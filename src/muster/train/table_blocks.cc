#include "muster/train/table_blocks.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace muster::train {
namespace {

// Union-find without ranks: there are few tables.
int Root(std::vector<int>& parents, int node) {
  while (parents[static_cast<size_t>(node)] != node) node = parents[static_cast<size_t>(node)];
  return node;
}

}  // namespace

absl::StatusOr<TableBlocks> TableBlocks::Create(const engine::Engine& engine) {
  const auto specs = engine.variables();
  std::vector<int> parents(specs.size());
  std::iota(parents.begin(), parents.end(), 0);
  std::map<int, int> table_of_list;
  for (const engine::TableUse& use : engine.table_uses()) {
    const auto [found, made] = table_of_list.try_emplace(use.id_list, use.variable);
    parents[static_cast<size_t>(Root(parents, use.variable))] = Root(parents, found->second);
  }
  TableBlocks blocks;
  blocks.group_of_.assign(specs.size(), -1);
  std::map<int, int> group_of_root;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].kind != engine::VariableKind::kTable) continue;
    blocks.tables_.push_back(static_cast<int>(i));
    const auto [found, made] = group_of_root.try_emplace(Root(parents, static_cast<int>(i)),
                                                         static_cast<int>(blocks.groups_.size()));
    if (made) blocks.groups_.push_back({.table_rows = specs[i].shape[0]});
    blocks.group_of_[i] = found->second;
    const int64_t rows = blocks.groups_[static_cast<size_t>(found->second)].table_rows;
    if (rows == specs[i].shape[0]) continue;
    return absl::UnimplementedError(StrCat(
        "table ", specs[i].name, " of ", specs[i].shape[0], " rows shares its ids with one of ",
        rows, ": parameter servers want them of one size; train by --strategy allreduce"));
  }
  for (const auto& [list, table] : table_of_list) {
    const int group = blocks.group_of_[static_cast<size_t>(table)];
    blocks.groups_[static_cast<size_t>(group)].lists.push_back(list);
  }
  for (Group& group : blocks.groups_) group.place.assign(static_cast<size_t>(group.table_rows), -1);
  return blocks;
}

absl::Status TableBlocks::Take(const features::FeatureBatch& batch) {
  batch_ = batch;
  for (Group& group : groups_) {
    group.rows.clear();
    absl::Status status;
    for (const int list : group.lists) {
      if (std::cmp_greater_equal(list, batch_.id_lists.size())) continue;  // the engine says so
      status.Update(Renumber(group, &batch_.id_lists[static_cast<size_t>(list)].ids));
    }
    for (const int32_t row : group.rows) group.place[static_cast<size_t>(row)] = -1;
    MUSTER_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::Status TableBlocks::Renumber(Group& group, std::vector<int32_t>* ids) {
  for (int32_t& id : *ids) {
    if (id == -1) continue;  // the value has no id
    if (id < 0 || id >= group.table_rows) {
      return absl::OutOfRangeError(
          StrCat("id ", id, " is outside a table of ", group.table_rows, " rows"));
    }
    int32_t& place = group.place[static_cast<size_t>(id)];
    if (place == -1) {
      place = static_cast<int32_t>(group.rows.size());
      group.rows.push_back(id);
    }
    id = place;
  }
  return absl::OkStatus();
}

}  // namespace muster::train
