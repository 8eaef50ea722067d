// The graph of an exported Keras model, for TensorBoard.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/engine/tensorflow/keras_export.h"
#include "muster/io/file_system.h"

namespace muster::model {

// Returns an encoded GraphDef with the operations of a step. DATA_LOSS for a broken export.
absl::StatusOr<std::string> StepGraph(io::FileSystem& files,
                                      const engine::tensorflow::KerasExport& model);

}  // namespace muster::model
