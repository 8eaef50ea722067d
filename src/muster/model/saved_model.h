// A trained model as a TensorFlow SavedModel: feature columns, tables and network as a graph that
// TensorFlow Serving and tf.saved_model.load run without any of our code.
#pragma once

#include <span>
#include <string>

#include "muster/base/status.h"
#include "muster/engine/engine.h"
#include "muster/io/file_system.h"
#include "muster/model/model_spec.h"

namespace muster::model {

// Writes FOLDER/{saved_model.pb,variables/variables.{index,data-00000-of-00001},assets/...} under a
// temporary name and renames it. Signatures (tag "serve"):
//   serving_default  one input a field used, raw values [batch] (lists: [batch, n], padded with ""
//                    or -1 for strings and ints); outputs as predict
//   predict          input "examples": serialized tf.Examples [batch]; outputs "logits" [batch, 1],
//                    "logistic" [batch, 1], "probabilities" [batch, 2], "class_ids" [batch, 1],
//                    "classes" [batch, 1] (strings)
//   classification   input "examples" (named "inputs"); outputs "classes" [batch, 2], "scores"
//   regression       input "inputs"; output "outputs" [batch, 1]
// `weights` in the order of `variables`. ALREADY_EXISTS when FOLDER exists.
absl::Status ExportSavedModel(io::FileSystem& files, const ModelSpec& spec,
                              std::span<const engine::VariableSpec> variables,
                              std::span<const engine::VariableView> weights,
                              const std::string& folder);

}  // namespace muster::model
