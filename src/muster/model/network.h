// Composes the parts of a model from the layers of engine/native.
#pragma once

#include <vector>

#include "muster/engine/native/graph.h"
#include "muster/features/transform.h"
#include "muster/model/spec/model_spec.h"
#include "muster/optim/optimizer.h"

namespace muster::model {

// Adds the layers of all parts of `spec`, which is valid and not an exported model, and returns the
// logits' node. Fills *request with the columns that the layers read, and *optimizers with the
// optimizer of each VariableSpec::group. model.h lists the variables' names.
engine::native::Node BuildNetwork(const ModelSpec& spec, features::FeatureRequest* request,
                                  std::vector<optim::OptimizerSpec>* optimizers,
                                  engine::native::GraphBuilder* graph);

}  // namespace muster::model
