// The columns of data that an exported Keras model reads, and the tensors that it predicts.
#pragma once

#include <vector>

#include "muster/base/status.h"
#include "muster/engine/predictions.h"
#include "muster/engine/tensorflow/keras_export.h"
#include "muster/features/raw_columns.h"

namespace muster::model {

features::RawColumnSpecs GetRawColumns(const engine::tensorflow::KerasExport& model);

// Returns one tensor, without rows, for each of the model's predictions. INVALID_ARGUMENT for a
// type that is neither a number nor a string.
absl::StatusOr<std::vector<engine::PredictionTensor>> GetPredictions(
    const engine::tensorflow::KerasExport& model);

}  // namespace muster::model
