#include "muster/train/weights/table_blocks.h"

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

absl::StatusOr<TableBlocks> TableBlocks::Create(const engine::Engine& engine, Which which) {
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
    if (which == Which::kDynamic && !specs[i].growth) continue;
    blocks.tables_.push_back(static_cast<int>(i));
    const auto [found, made] = group_of_root.try_emplace(Root(parents, static_cast<int>(i)),
                                                         static_cast<int>(blocks.groups_.size()));
    if (made) {
      blocks.groups_.push_back(
          {.table_rows = specs[i].shape[0], .grows = specs[i].growth.has_value()});
    }
    blocks.group_of_[i] = found->second;
    const int64_t rows = blocks.groups_[static_cast<size_t>(found->second)].table_rows;
    if (rows == specs[i].shape[0]) continue;
    return absl::UnimplementedError(StrCat(
        "table ", specs[i].name, " of ", specs[i].shape[0], " rows shares its ids with one of ",
        rows, ": parameter servers need tables of one size; train by --strategy allreduce"));
  }
  for (const auto& [list, table] : table_of_list) {
    const int group = blocks.group_of_[static_cast<size_t>(table)];
    if (group < 0) continue;  // blocks of this table were not requested
    blocks.groups_[static_cast<size_t>(group)].lists.push_back(list);
  }
  return blocks;
}

absl::Status TableBlocks::Renumber(const features::FeatureBatch& batch) {
  batch_ = batch;
  for (Group& group : groups_) {
    lists_.clear();
    for (const int list : group.lists) {
      if (std::cmp_greater_equal(list, batch_.id_lists.size())) continue;  // the engine reports it
      lists_.push_back(&batch_.id_lists[static_cast<size_t>(list)]);
    }
    MUSTER_RETURN_IF_ERROR(group.grows ? RenumberKeys(group) : RenumberIds(group));
  }
  return absl::OkStatus();
}

// Several lists are concatenated and renumbered as one.
absl::Status TableBlocks::RenumberIds(Group& group) {
  std::vector<int32_t>* ids = lists_.size() == 1 ? &lists_[0]->ids : &joined_;
  if (lists_.size() != 1) {
    joined_.clear();
    for (const auto* list : lists_) {
      joined_.insert(joined_.end(), list->ids.begin(), list->ids.end());
    }
  }
  if (const int64_t bad = engine::FindBadId(*ids, group.table_rows); bad >= 0) {
    return absl::OutOfRangeError(StrCat("id ", (*ids)[static_cast<size_t>(bad)],
                                        " is outside a table of ", group.table_rows, " rows"));
  }
  finder_.Find(*ids, group.table_rows, &group.distinct);
  ids->swap(group.distinct.positions);
  if (ids != &joined_) return absl::OkStatus();
  auto next = joined_.begin();
  for (auto* list : lists_) {
    const auto end = next + static_cast<ptrdiff_t>(list->ids.size());
    std::copy(next, end, list->ids.begin());
    next = end;
  }
  return absl::OkStatus();
}

absl::Status TableBlocks::RenumberKeys(Group& group) {
  group.keys.clear();
  group.place_of_key.clear();
  for (auto* list : lists_) {
    if (list->keys.size() != list->ids.size()) {
      return absl::InvalidArgumentError(StrCat(list->ids.size(), " ids with ", list->keys.size(),
                                               " keys for a table that grows"));
    }
    for (size_t i = 0; i < list->ids.size(); ++i) {
      if (list->ids[i] < 0) continue;
      const auto [found, is_new] =
          group.place_of_key.try_emplace(list->keys[i], static_cast<int32_t>(group.keys.size()));
      if (is_new) group.keys.push_back(list->keys[i]);
      list->ids[i] = found->second;
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::train
