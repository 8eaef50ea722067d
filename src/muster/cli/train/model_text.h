// A model file that is no file: `env:NAME` is the text of an environment variable, as the pods of
// `muster train --on kubernetes` have it.
#pragma once

#include <span>
#include <string>

#include "muster/io/file_system.h"
#include "muster/model/spec/model_spec.h"

namespace muster::cli {

inline constexpr char kModelVariable[] = "MUSTER_MODEL_FILE";

// The model of a file, of the folder of an exported model, or of `env:NAME`. The errors are those
// of model::LoadModelSpec; NOT_FOUND if the variable is not set.
absl::StatusOr<model::ModelSpec> LoadModel(io::FileSystem& files, const std::string& spec,
                                           std::span<const std::string> settings = {});
// The text of such a file or variable.
absl::StatusOr<std::string> ReadModelText(io::FileSystem& files, const std::string& spec);

}  // namespace muster::cli
