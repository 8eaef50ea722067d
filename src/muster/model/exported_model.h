// An exported Keras model (docs/keras.md) as a model to train: what a model file is to the models
// of our own.
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

// What FOLDER/model.json says. Errors of OpenKerasExport, and for inputs that no record can have.
absl::StatusOr<ModelSpec> LoadExportedSpec(io::FileSystem& files, const std::string& folder);

// Copies the export to FOLDER, which is there whole or not at all.
absl::Status SaveExport(io::FileSystem& files, const ModelSpec& spec, const std::string& folder);

// See DescribeDifference.
std::string DescribeExportedDifference(const ModelSpec& a, const ModelSpec& b);

// The engine's host is started when something is computed, by the TensorFlow of `options`; until
// then none is needed. Initial values are not read: they are in KerasExport::weights().
absl::StatusOr<Model> BuildExported(const ModelSpec& spec, const BuildOptions& options);

features::RawColumnSpecs RawColumnsOf(const engine::tensorflow::KerasExport& model);

// Without rows: a tensor for each of the model's predictions. INVALID_ARGUMENT for one whose type
// is no number and no string.
absl::StatusOr<std::vector<engine::PredictionTensor>> PredictionsOf(
    const engine::tensorflow::KerasExport& model);

// An encoded GraphDef: the operations of a step, for TensorBoard. DATA_LOSS for a broken export.
absl::StatusOr<std::string> StepGraph(io::FileSystem& files,
                                      const engine::tensorflow::KerasExport& model);

// The export's metrics and the mean loss over rows, as Keras's evaluate has them. The engine of
// `model`, which is exported, computes them in Finish, and must outlive them.
std::unique_ptr<metrics::Metrics> NewExportedMetrics(const Model& model);

}  // namespace muster::model
