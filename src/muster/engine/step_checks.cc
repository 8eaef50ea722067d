#include "muster/engine/step_checks.h"

#include <algorithm>
#include <utility>

#include "muster/engine/distinct_rows.h"

namespace muster::engine {

absl::Status CheckWeights(std::span<const VariableSpec> specs,
                          std::span<const VariableView> weights) {
  if (weights.size() != specs.size()) {
    return absl::InvalidArgumentError(
        StrCat("the model has ", specs.size(), " variables, but ", weights.size(), " were given"));
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    const VariableSpec& spec = specs[i];
    const VariableView& view = weights[i];
    const bool fits = spec.kind == VariableKind::kTable ? view.cols == spec.shape[1]
                                                        : view.rows * view.cols == spec.elements();
    if (!fits || view.rows < 0 || (view.data == nullptr && view.rows > 0)) {
      return absl::InvalidArgumentError(StrCat("the memory of variable ", spec.name, " is ",
                                               view.rows, " x ", view.cols,
                                               ", which does not fit its shape"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckIds(const features::FeatureBatch& batch, int index, const std::string& table,
                      int64_t table_rows) {
  if (std::cmp_greater_equal(index, batch.id_lists.size())) {
    return absl::InvalidArgumentError(StrCat("the batch has ", batch.id_lists.size(),
                                             " id lists, but table ", table, " reads list ",
                                             index));
  }
  const features::IdList& list = batch.id_lists[static_cast<size_t>(index)];
  const auto rows = static_cast<size_t>(batch.rows);
  bool fits = list.ids.size() == rows;
  if (!list.one_per_row()) {
    fits = list.offsets.size() == rows + 1 && list.offsets.front() == 0 &&
           list.offsets.back() == list.ids.size() &&
           std::is_sorted(list.offsets.begin(), list.offsets.end());
  }
  if (!fits) {
    return absl::InvalidArgumentError(StrCat("id list ", index, " of table ", table, ": its ",
                                             list.ids.size(), " ids and ", list.offsets.size(),
                                             " offsets do not fit ", batch.rows, " rows"));
  }
  if (!list.weights.empty() && list.weights.size() != list.ids.size()) {
    return absl::InvalidArgumentError(StrCat("id list ", index, " of table ", table, ": ",
                                             list.weights.size(), " weights for ", list.ids.size(),
                                             " ids"));
  }
  if (const int64_t bad = FindBadId(list.ids, table_rows); bad >= 0) {
    return absl::InvalidArgumentError(
        StrCat("id list ", index, ", entry ", bad, ": id ", list.ids[static_cast<size_t>(bad)],
               " is outside table ", table, " of ", table_rows, " rows"));
  }
  return absl::OkStatus();
}

}  // namespace muster::engine
