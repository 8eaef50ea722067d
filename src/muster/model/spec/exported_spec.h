// An exported Keras model (docs/keras.md) as a ModelSpec. It takes the place that a model file has
// for this program's own models.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/model/spec/model_spec.h"

namespace muster::model {

// Reads FOLDER/model.json. Errors of OpenKerasExport, and errors for inputs that no record can
// have.
absl::StatusOr<ModelSpec> LoadExportedSpec(io::FileSystem& files, const std::string& folder);

// Copies the export to FOLDER, which then exists as a whole or not at all.
absl::Status SaveExport(io::FileSystem& files, const ModelSpec& spec, const std::string& folder);

// The format of the data, in FOLDER/data_format.yaml as in a model file; no such file: nothing is
// said of it.
absl::Status SaveExportedFormat(io::FileSystem& files, const formats::DataFormat& format,
                                const std::string& folder);
absl::StatusOr<formats::DataFormat> LoadExportedFormat(io::FileSystem& files,
                                                       const std::string& folder);

// See DescribeDifference.
std::string DescribeExportedDifference(const ModelSpec& a, const ModelSpec& b);

}  // namespace muster::model
