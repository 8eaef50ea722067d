// The `model` of a drafted model file: its parts, with their columns and optimizers.
#pragma once

#include <string>
#include <vector>

#include "muster/model/draft/draft.h"

namespace muster::model {

// The names of the feature columns that a draft has, by the parts that use them.
struct DraftParts {
  std::vector<std::string> linear;
  std::vector<std::string> dense;        // of dnn and fm
  std::vector<std::string> query, item;  // the dense ones of a two_tower model
};

// "model:" with all that is below it. `draft` has all but its `yaml`.
std::string WriteDraftModel(const Draft& draft, const DraftParts& parts);

}  // namespace muster::model
