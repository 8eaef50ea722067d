// Fills a RunConfig with the place in a cluster that TF_CONFIG gives (job/tf_config_contents.h), by
// the rules of tensorflow_estimator/python/estimator/run_config.py.
#pragma once

#include <string_view>

#include "muster/base/status.h"
#include "muster/train/loop/run_config.h"

namespace muster::train {

// Fills the cluster's part of *config, and model_dir if it is empty. A `json` of "" changes
// nothing: the process trains alone. INVALID_ARGUMENT "TF_CONFIG: ..." for text that is not such an
// object and for each rule of tf.estimator that it breaks; *config is then unchanged.
//
// The evaluator is outside the training's cluster: in its *config the cluster is empty and the
// counts are 0; chief_address is the training's.
absl::Status ApplyTfConfig(std::string_view json, RunConfig* config);

// INVALID_ARGUMENT if the cluster has a type of tasks that no training has: such a task would be
// one that nobody waits for, and may be a misspelt worker.
absl::Status CheckTaskTypes(const RunConfig& config);

}  // namespace muster::train
