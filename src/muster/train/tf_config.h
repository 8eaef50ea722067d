// TF_CONFIG: the environment variable by which a launcher tells a task of a cluster who it is.
//
//   {"cluster": {"chief": ["host0:2222"], "worker": ["host1:2222"], "ps": ["host2:2222"]},
//    "task": {"type": "worker", "index": 0}, "model_dir": "/models/a"}
//
// Also "service" (an object), "session_master" and "eval_session_master" (addresses). Source:
// tensorflow_estimator/python/estimator/run_config.py.
#pragma once

#include <string_view>

#include "muster/base/status.h"
#include "muster/train/run_config.h"

namespace muster::train {

// Fills the cluster's part of *config, and model_dir where it is empty. `json` "" is a process by
// itself. INVALID_ARGUMENT "TF_CONFIG: ..." for text that is no such object and for each rule of
// tf.estimator that it breaks; *config is then as it was.
//
// The evaluator stands outside the training's cluster: its own cluster is empty, its counts are 0;
// of the training it has the chief's address.
absl::Status ApplyTfConfig(std::string_view json, RunConfig* config);

}  // namespace muster::train
