// The parts of a model as nodes of a TensorFlow graph: the layers that network.cc composes from
// engine/native, for inference. Used by ExportSavedModel only.
#pragma once

#include <string>
#include <vector>

#include "muster/formats/graph_def.h"
#include "muster/model/saved_model/saved_model_features.h"
#include "muster/model/saved_model/saved_model_variables.h"
#include "muster/model/spec/model_spec.h"

namespace muster::model {

struct Network {
  // [batch, head.logits_dimension()]; a two_tower model's without the sampling probability, which
  // only training reads.
  std::string logits;
  // Of a two_tower model: the vectors, each of which depends on the inputs of its own tower only.
  std::string query = {}, item = {};
};

// `fed` are the caller's inputs: a baseline
// model makes as many rows as the first of these has. A variable that is missing, or whose shape
// differs from the spec, is an error in variables->status().
Network AddNetwork(const ModelSpec& spec, const std::vector<formats::SignatureTensor>& fed,
                   SavedModelFeatures* features, SavedModelVariables* variables,
                   const std::string& scope, formats::GraphDefBuilder* graph);

}  // namespace muster::model
