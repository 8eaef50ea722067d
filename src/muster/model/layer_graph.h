// The model as TensorBoard's graph page shows it: data fields, columns, the engine's layers with
// their variables, and the head.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/model/model.h"

namespace muster::model {

// Returns an encoded GraphDef with names and connections only; its nodes are not real TensorFlow
// ops.
//   inputs/FIELD     Placeholder
//   columns/COLUMN   the column's kind in a model file, with its settings as attributes
//   LAYER            Engine::layers(), each with its variables under their own names
//   head/loss        reads the logits, the label and the weight; head/predictions reads the logits
// Each node has its shape (rows unknown) in _output_shapes. For an exported model the graph has the
// operations of its step.
absl::StatusOr<std::string> LayerGraph(const Model& model);

}  // namespace muster::model
