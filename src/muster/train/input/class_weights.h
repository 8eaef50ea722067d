// ClassWeights: a weight for the rows of each class, as class_weight of Keras's fit: a row's loss
// is multiplied by the weight of the row's class, which is 1 for a class without one.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "muster/base/status.h"
#include "muster/features/batch.h"
#include "muster/model/spec/model_spec.h"

namespace muster::train {

using ClassWeights = std::map<int64_t, float>;  // by the class's number

// "0=1,1=4". If the label of `model` has words, a class is one of them. INVALID_ARGUMENT also for a
// model whose label names no class, a class that the model does not have, and an exported model
// whose step takes no weights.
absl::StatusOr<ClassWeights> ParseClassWeights(const std::string& text,
                                               const model::ModelSpec& model);

// Multiplies the weights of a batch with labels. `weights` are of ParseClassWeights for the same
// model. An exported model's class is its label rounded, or the place of the largest of several
// numbers.
void ApplyClassWeights(const model::ModelSpec& model, const ClassWeights& weights,
                       features::FeatureBatch* batch);

}  // namespace muster::train
