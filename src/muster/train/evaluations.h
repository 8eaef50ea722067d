// Evaluations: what earlier evaluations of a model gave, read back from their event files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/train/exporter.h"

namespace muster::train {

// Step -> metrics, of all event files in `folder` (a later value of a tag replaces an earlier one);
// empty when there is no folder. Event files that are broken are passed over: they are a history,
// not the model.
absl::StatusOr<std::map<int64_t, Metrics>> ReadEvaluations(io::FileSystem& files,
                                                           const std::string& folder);

// The value, or INVALID_ARGUMENT that names `user` and the nearest metric there is.
absl::StatusOr<double> FindMetric(const Metrics& metrics, const std::string& name,
                                  const std::string& user);

}  // namespace muster::train
