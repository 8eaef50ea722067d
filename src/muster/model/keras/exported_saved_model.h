// Writes a trained Keras model as a TensorFlow SavedModel: the one in its export, with the trained
// values (docs/formats/keras_export.md, "Serving").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/engine/engine.h"
#include "muster/engine/tensorflow/keras_export.h"
#include "muster/io/file_system.h"

namespace muster::model {

// Copies the export's serving/ to FOLDER, which is written under a temporary name, synced and
// renamed; its parent is created if needed. `weights`, in the order of `variables`, are matched by
// name with the export's variables: all trained variables and all states must be among them.
// Everything else (frozen weights and tables, seeds, the template's other contents) keeps the
// export's values. fingerprint.pb, which identifies the bundle of the initial values, is left out.
// Weights are written directly from their memory; the other tensors are copied one at a time.
// ALREADY_EXISTS if FOLDER exists. After an error nothing is left. `step`, if given, is stored in
// the bundle as "global_step", which TensorFlow does not read.
absl::Status ExportServing(io::FileSystem& files, const engine::tensorflow::KerasExport& model,
                           std::span<const engine::VariableSpec> variables,
                           std::span<const engine::VariableView> weights, const std::string& folder,
                           std::optional<int64_t> step = {});

// Returns the key of that variable in the bundle of such a SavedModel.
std::string ServingKey(const engine::tensorflow::KerasExport& model, std::string_view variable);

}  // namespace muster::model
