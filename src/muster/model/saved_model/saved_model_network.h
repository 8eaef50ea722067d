// The parts of a model as nodes of a TensorFlow graph: the layers that network.cc composes from
// engine/native, for inference. Used only by ExportSavedModel.
#pragma once

#include <string>
#include <vector>

#include "muster/formats/graph_def.h"
#include "muster/model/saved_model/saved_model_features.h"
#include "muster/model/saved_model/saved_model_variables.h"
#include "muster/model/spec/model_spec.h"

namespace muster::model {

struct Network {
  // [batch, head.logits_dimension()]; for a two_tower model without the sampling probability, which
  // only training reads.
  std::string logits;
  // For a two_tower model: the vectors, each of which depends only on the inputs of its tower.
  std::string query = {}, item = {};
};

// `fed` are the caller's inputs: a baseline model makes as many rows as the first of them has. A
// variable that is missing, or whose shape differs from the spec's, is an error in
// variables->status().
Network AddNetwork(const ModelSpec& spec, const std::vector<formats::SignatureTensor>& fed,
                   SavedModelFeatures* features, SavedModelVariables* variables,
                   const std::string& scope, formats::GraphDefBuilder* graph);

}  // namespace muster::model
