// TF_CONFIG: the environment variable by which a launcher tells a task which place in the cluster
// it has. Its contents as plain data, parsed from JSON and printed as such.
//
//   {"cluster": {"chief": ["host0:2222"], "worker": ["host1:2222"], "ps": ["host2:2222"]},
//    "task": {"type": "worker", "index": 0}, "environment": "cloud", "model_dir": "/models/a"}
//
// Also "service" (an object), "session_master" and "eval_session_master" (addresses). Source:
// tensorflow_estimator/python/estimator/run_config.py.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"

namespace muster::job {

// The tasks of one job of the cluster.
struct TfConfigJob {
  std::string name = {};                    // "worker"
  std::vector<std::string> addresses = {};  // by index; "": the index is missing
  // The form {"1": "host1:2222"}, which alone can leave out an index.
  bool by_index = false;
  friend bool operator==(const TfConfigJob&, const TfConfigJob&) = default;
};

struct TfConfigContents {
  std::vector<TfConfigJob> cluster = {};  // names are distinct
  // Of the task, of which each part may be missing.
  std::optional<std::string> type = {};
  std::optional<int> index = {};
  std::string environment = {};
  std::string model_dir = {};
  std::string service = {};  // JSON
  std::optional<std::string> session_master = {}, eval_session_master = {};
  friend bool operator==(const TfConfigContents&, const TfConfigContents&) = default;
};

// INVALID_ARGUMENT "TF_CONFIG: ...", which names the field and what it must be. Nothing is known
// about jobs and tasks here: whether the task is in the cluster is for the caller to see.
absl::StatusOr<TfConfigContents> ParseTfConfig(std::string_view json);

// On one line, without what is missing.
std::string PrintTfConfig(const TfConfigContents& contents);

}  // namespace muster::job
