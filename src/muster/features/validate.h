// Parts of Validate (column.h). Internal to this layer.
#pragma once

#include <string>
#include <vector>

#include "muster/features/column.h"

namespace muster::features {

template <typename... Arguments>
absl::Status Invalid(const Arguments&... arguments) {
  return absl::InvalidArgumentError(StrCat(arguments...));
}

// Checks every column by itself, and the properties that columns share: their names, shared tables,
// lengths of lists. The schema must be valid.
absl::Status CheckColumns(const FeatureSpec& spec);

// Checks the words of a vocabulary over a field of `type`.
absl::Status CheckWords(formats::ValueType type, const std::vector<std::string>& words);

}  // namespace muster::features
