#include "muster/tables/dynamic_table_columns.h"

#include "muster/base/strings.h"

namespace muster::tables {

using Kind = DynamicTableColumn::Kind;

std::vector<DynamicTableColumn> GetColumnsForInference(const std::string& weights, int64_t cols) {
  return {{.name = weights, .cols = cols}, {.kind = Kind::kKeys, .name = StrCat(weights, "/keys")}};
}

std::vector<DynamicTableColumn> GetDynamicTableColumns(std::span<const std::string> tensors,
                                                       int64_t cols) {
  const std::string& weights = tensors.front();
  std::vector<DynamicTableColumn> columns = GetColumnsForInference(weights, cols);
  for (size_t i = 1; i < tensors.size(); ++i) {
    columns.push_back({.name = tensors[i], .slot = static_cast<int>(i) - 1, .cols = cols});
  }
  columns.push_back({.kind = Kind::kLastSteps, .name = StrCat(weights, "/last_steps")});
  columns.push_back({.kind = Kind::kWaitingKeys, .name = StrCat(weights, "/waiting_keys")});
  columns.push_back({.kind = Kind::kWaitingCounts, .name = StrCat(weights, "/waiting_counts")});
  columns.push_back(
      {.kind = Kind::kWaitingLastSteps, .name = StrCat(weights, "/waiting_last_steps")});
  return columns;
}

}  // namespace muster::tables
