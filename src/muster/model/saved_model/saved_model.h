// Writes a trained model as a TensorFlow SavedModel: feature columns, tables and network as a graph
// that TensorFlow Serving and tf.saved_model.load run without any of Muster's code.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "muster/base/status.h"
#include "muster/engine/engine.h"
#include "muster/io/file_system.h"
#include "muster/model/spec/model_spec.h"

namespace muster::model {

// Writes FOLDER/{saved_model.pb,variables/variables.{index,data-00000-of-00001},assets/<vocabulary
// files>} under a temporary name and renames it; its parent is created if needed. ALREADY_EXISTS if
// FOLDER exists. After an error nothing is left. See docs/formats/saved_model.md. Signatures (tag
// "serve"):
//   serving_default  an input for each field that the model's columns read: values [batch] as they
//                    are after defaults were filled in; lists [batch, n], padded with "" (strings)
//                    or -1 (ints), which therefore cannot be values; outputs as in predict
//   predict          input "examples": serialized tf.Examples [batch]; outputs: the head's
//                    (engine/predictions.h), all_class_ids as int32
//   classification   input "inputs": tf.Examples; outputs "classes" (every class' name) and
//                    "scores", [batch, classes]; not for a regression head
//   regression       input "inputs": tf.Examples; output "outputs": the logistic [batch, 1] of a
//                    binary head, the predictions of a regression head; not for other heads
//   query, item      of a two_tower model: the raw inputs that the tower reads, and its vector
// A baseline model reads no inputs: its serving_default takes the first input that is neither
// label, weight nor key (or, if there is none, "examples"), and it does not parse its examples.
// `spec` must be valid (features::Validate); `weights` are in the order of `variables`. If the
// model has tables that grow, `dynamic_keys` has the distinct keys of each variable that grows; the
// variable's rows are those of the keys in this order, followed by a row of zeros for all other
// keys. `step`, if given, is stored in the bundle as "global_step", which TensorFlow does not read.
absl::Status ExportSavedModel(io::FileSystem& files, const ModelSpec& spec,
                              std::span<const engine::VariableSpec> variables,
                              std::span<const engine::VariableView> weights,
                              const std::string& folder,
                              std::span<const std::span<const int64_t>> dynamic_keys = {},
                              std::optional<int64_t> step = {});

}  // namespace muster::model
