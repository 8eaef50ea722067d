// An exported Keras model (docs/keras.md) as a ModelSpec. The export takes the place of a model
// file.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/model/spec/model_spec.h"

namespace muster::model {

// Reads FOLDER/model.json. Errors are those of OpenKerasExport, and errors for inputs that no
// record can have.
absl::StatusOr<ModelSpec> LoadExportedSpec(io::FileSystem& files, const std::string& folder);

// Copies the export to FOLDER, which is then either complete or absent.
absl::Status SaveExport(io::FileSystem& files, const ModelSpec& spec, const std::string& folder);

// Writes the format of the data to FOLDER/data_format.yaml, as in a model file. Without this file
// nothing is known about the format.
absl::Status SaveExportedFormat(io::FileSystem& files, const formats::DataFormat& format,
                                const std::string& folder);
absl::StatusOr<formats::DataFormat> LoadExportedFormat(io::FileSystem& files,
                                                       const std::string& folder);

// As DescribeDifference.
std::string DescribeExportedDifference(const ModelSpec& a, const ModelSpec& b);

}  // namespace muster::model
