// An exported Keras model (docs/keras.md) as a model to train.
#pragma once

#include <memory>

#include "muster/base/status.h"
#include "muster/metrics/metrics.h"
#include "muster/model/model.h"

namespace muster::model {

// The engine's host is started by the first computation, with the TensorFlow of `options`; until
// then TensorFlow is not needed. Initial values are not read here: they are in
// KerasExport::weights().
absl::StatusOr<Model> BuildExported(const ModelSpec& spec, const BuildOptions& options);

// Returns the export's metrics and the mean loss over rows, as Keras's evaluate reports them. The
// engine of `model`, an exported model, computes them in Finish and must outlive them.
std::unique_ptr<metrics::Metrics> NewExportedMetrics(const Model& model);

}  // namespace muster::model
