// Checks an engine's arguments before they are read.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "muster/base/status.h"
#include "muster/engine/engine.h"
#include "muster/features/batch.h"

namespace muster::engine {

// INVALID_ARGUMENT if the memory does not fit these variables.
absl::Status CheckWeights(std::span<const VariableSpec> specs,
                          std::span<const VariableView> weights);

// INVALID_ARGUMENT if the batch's id list `index` does not fit the batch's rows or has an id
// outside the table of that name and size.
absl::Status CheckIds(const features::FeatureBatch& batch, int index, const std::string& table,
                      int64_t table_rows);

}  // namespace muster::engine
