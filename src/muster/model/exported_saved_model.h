// A trained Keras model as a TensorFlow SavedModel: the one that its export carries, with the
// trained values (docs/formats/keras_export.md, "Serving").
#pragma once

#include <span>
#include <string>

#include "muster/base/status.h"
#include "muster/engine/engine.h"
#include "muster/engine/tensorflow/keras_export.h"
#include "muster/io/file_system.h"

namespace muster::model {

// Copies what the export has in serving/ to FOLDER, which is written under a temporary name, synced
// and renamed; its parent is made if need be. `weights`, in the order of `variables`, are matched
// by name with the export's variables: all that is trained and all states must be among them. What
// else there is (frozen weights and tables, seeds, what the template holds besides variables) keeps
// the export's values. fingerprint.pb, which names the bundle of the initial values, is left out.
// Weights are written from where they are; of what is copied one tensor at a time is in memory.
// ALREADY_EXISTS when FOLDER exists; after an error nothing is left.
absl::Status ExportServing(io::FileSystem& files, const engine::tensorflow::KerasExport& model,
                           std::span<const engine::VariableSpec> variables,
                           std::span<const engine::VariableView> weights,
                           const std::string& folder);

}  // namespace muster::model
