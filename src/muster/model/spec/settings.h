// The settings that people tune in a model file, as names and values for TensorBoard's HParams
// page.
#pragma once

#include <vector>

#include "muster/formats/hparams.h"
#include "muster/model/spec/model_spec.h"

namespace muster::model {

// Returns the entries under model, head and train in the printed spec, except lists of columns. A
// name is the path of keys without the leading "model": "type", "dnn/hidden_units" ("[100, 50]"),
// "dnn/dropout", "dnn/optimizer" ("adagrad"), "dnn/optimizer/learning_rate", "train/batch_size".
std::vector<formats::Hparam> Settings(const ModelSpec& spec);

}  // namespace muster::model
