// The kinds of model that a draft can have, by the `type` of a model file, and whether data and
// label are fit for one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/model/draft/draft_column.h"

namespace muster::model {

// A kind and the parts that it has.
struct DraftType {
  std::string_view name;   // "deepfm"
  std::string_view title;  // "DeepFM", for people
  bool linear = false, fm = false, dnn = false, cross = false, towers = false;
};

std::span<const DraftType> DraftTypes();
std::vector<std::string> DraftTypeNames();

// INVALID_ARGUMENT, which suggests the nearest name, for an unknown one.
absl::StatusOr<const DraftType*> FindDraftType(const std::string& name);

// INVALID_ARGUMENT if a model of this kind cannot learn the label, or finds too few columns. `item`
// names the columns of the item's tower.
absl::Status CheckDraftType(const DraftType& type, const DraftLabel& label,
                            const std::vector<DraftColumn>& columns,
                            const std::vector<std::string>& item);

}  // namespace muster::model
