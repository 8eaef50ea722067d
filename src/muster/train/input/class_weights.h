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

// Parses "0=1,1=4". If the label of `model` has words, classes are given by them. INVALID_ARGUMENT
// also for a model whose label is not a class, a class that the model does not have, and an
// exported model whose step takes no weights.
absl::StatusOr<ClassWeights> ParseClassWeights(const std::string& text,
                                               const model::ModelSpec& model);

// Multiplies the weights of a batch with labels. `weights` must come from ParseClassWeights for
// the same model. The class of a row of an exported model is its rounded label, or the index of the
// largest of several numbers.
void ApplyClassWeights(const model::ModelSpec& model, const ClassWeights& weights,
                       features::FeatureBatch* batch);

}  // namespace muster::train
