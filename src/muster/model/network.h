// The parts of a model composed from the layers of engine/native.
#pragma once

#include <vector>

#include "muster/engine/native/graph.h"
#include "muster/features/transform.h"
#include "muster/model/spec/model_spec.h"
#include "muster/optim/optimizer.h"

namespace muster::model {

// Adds the layers of all parts of `spec`, which is valid and no exported model, and returns the
// logits' node. Fills *request with the columns that the layers read, and *optimizers with that of
// each VariableSpec::group. The variables' names are in model.h.
engine::native::Node BuildNetwork(const ModelSpec& spec, features::FeatureRequest* request,
                                  std::vector<optim::OptimizerSpec>* optimizers,
                                  engine::native::GraphBuilder* graph);

}  // namespace muster::model
