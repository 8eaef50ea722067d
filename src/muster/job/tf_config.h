// TF_CONFIG for one task of a cluster, as TensorFlow's TFConfigClusterResolver and tf.estimator's
// RunConfig read it, and host lists for programs that take flags instead.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/job/job_spec.h"

namespace muster::job {

// The environment variable with the seconds that a native task waits for the others (0: without a
// limit); launchers set it beside TF_CONFIG for all their tasks.
inline constexpr char kRendezvousVariable[] = "MUSTER_RENDEZVOUS_TIMEOUT";

using Cluster = std::map<TaskId, std::string>;  // "host:port" of each task

struct TfConfigOptions {
  // TFJob lists the evaluator in every task's cluster; Estimator and ParameterServerStrategy then
  // wait for it (tensorflow#46169). If false, only the evaluator sees itself.
  bool evaluator_in_cluster = false;
  bool master_as_chief = false;  // for programs that do not know the master type
  std::string model_dir = {};    // for tf.estimator's RunConfig; "": not in it
};

// The "model_dir" of a TF_CONFIG; "" if it has none or is not a TF_CONFIG.
std::string GetModelDir(std::string_view tf_config);

// {"cluster": {...}, "task": {"type": "worker", "index": 0}, "environment": "cloud"}; "" for a job
// of one task, which is not distributed. `spec.dynamic_workers` selects TFJob's sparse form: a
// worker sees itself and all ps, a ps itself. `cluster` may lack an evaluator whose address is not
// known yet. INVALID_ARGUMENT if the indices of a type are not 0, 1, 2, ... or `task` is not in
// `cluster`.
absl::StatusOr<std::string> TfConfig(const JobSpec& spec, const Cluster& cluster, TaskId task,
                                     const TfConfigOptions& options = {});

// The values of the placeholders in one task's command and environment.
struct Placeholders {
  const Cluster& cluster;
  TaskId task;
  std::string job = {}, name_space = {};
  std::string node = {};  // the name of the task's machine
};

// The values for a task of `spec` on the machine `node`. `cluster` must outlive the result.
Placeholders PlaceholdersFor(const JobSpec& spec, const Cluster& cluster, TaskId task,
                             const std::string& node);

// `text` with {ps_hosts:,}, {worker_hosts:;}, {chief_hosts} (and master_, evaluator_), {type},
// {index}, {host}, {port}, {job}, {namespace} and {node} replaced; the text after ':' joins the
// hosts, ',' when there is none. {host} and {port} are the task's own. Other braces stay as they
// are.
std::string ExpandPlaceholders(std::string_view text, const Placeholders& values);

// The kind of program that the tasks run, for checks before anything starts.
enum class Expect { kAny, kEstimator, kMultiWorkerMirrored, kParameterServer };
// "estimator", "mwms", "psv2".
absl::StatusOr<Expect> ParseExpect(std::string_view name);

// INVALID_ARGUMENT for a cluster that such a program would refuse or wait for indefinitely.
absl::Status CheckCluster(const JobSpec& spec, Expect expect);

}  // namespace muster::job
