// Evaluations: the results of earlier evaluations of a model, read back from their event files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/model/spec/model_spec.h"

namespace muster::train {

using Metrics = std::map<std::string, double>;  // by name

// Step -> metrics, from all event files in `folder` (a later value of a tag replaces an earlier
// one); empty when the folder does not exist. Corrupt event files are skipped, since they contain
// only history.
absl::StatusOr<std::map<int64_t, Metrics>> ReadEvaluations(io::FileSystem& files,
                                                           const std::string& folder);

// The metric's value, or INVALID_ARGUMENT, which names `user` and the most similar metric.
absl::StatusOr<double> FindMetric(const Metrics& metrics, const std::string& name,
                                  const std::string& user);

// OK if evaluations of `model` have `metric`, else FindMetric's error. Allows a check before the
// first evaluation, which may be hours away.
absl::Status CheckMetric(const model::ModelSpec& model, const std::string& metric,
                         const std::string& user);

}  // namespace muster::train
