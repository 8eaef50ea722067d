// An exported Keras model (docs/keras.md) as a model to train. It takes the place that a model file
// has for this program's own models.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/predictions.h"
#include "muster/engine/tensorflow/keras_export.h"
#include "muster/features/raw_columns.h"
#include "muster/io/file_system.h"
#include "muster/metrics/metrics.h"
#include "muster/model/model.h"

namespace muster::model {

// Reads FOLDER/model.json. Errors of OpenKerasExport, and errors for inputs that no record can
// have.
absl::StatusOr<ModelSpec> LoadExportedSpec(io::FileSystem& files, const std::string& folder);

// Copies the export to FOLDER, which then exists as a whole or not at all.
absl::Status SaveExport(io::FileSystem& files, const ModelSpec& spec, const std::string& folder);

// See DescribeDifference.
std::string DescribeExportedDifference(const ModelSpec& a, const ModelSpec& b);

// The engine's host is started when something is first computed, with the TensorFlow of `options`;
// until then TensorFlow is not needed. Initial values are not read: they are in
// KerasExport::weights().
absl::StatusOr<Model> BuildExported(const ModelSpec& spec, const BuildOptions& options);

features::RawColumnSpecs GetRawColumns(const engine::tensorflow::KerasExport& model);

// One tensor, without rows, for each of the model's predictions. INVALID_ARGUMENT for a type that
// is neither a number nor a string.
absl::StatusOr<std::vector<engine::PredictionTensor>> GetPredictions(
    const engine::tensorflow::KerasExport& model);

// An encoded GraphDef: the operations of a step, for TensorBoard. DATA_LOSS for a broken export.
absl::StatusOr<std::string> StepGraph(io::FileSystem& files,
                                      const engine::tensorflow::KerasExport& model);

// The export's metrics and the mean loss over rows, as Keras's evaluate reports them. The engine of
// `model`, an exported model, computes them in Finish and must outlive them.
std::unique_ptr<metrics::Metrics> NewExportedMetrics(const Model& model);

}  // namespace muster::model
