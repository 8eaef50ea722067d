// Reads the signatures of an exported model: arguments and results by their names.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/engine/tensorflow/keras_export.h"

namespace muster::engine::tensorflow {

// Reads "signatures" of a manifest whose other parts are already in `*model`, and checks that
// `step` computes what a trainer needs for each variable.
absl::Status ReadSignatures(const formats::Json& json, const std::string& where,
                            KerasExport* model);

}  // namespace muster::engine::tensorflow
