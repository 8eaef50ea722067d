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

using Cluster = std::map<TaskId, std::string>;  // "host:port" of each task

struct TfConfigOptions {
  // TFJob lists the evaluator in everyone's cluster, for which Estimator and
  // ParameterServerStrategy then wait (tensorflow#46169). Left out, only the evaluator sees itself.
  bool evaluator_in_cluster = false;
  bool master_as_chief = false;  // for programs that know no master
  std::string model_dir = {};    // for tf.estimator's RunConfig; "": not in it
};

// The "model_dir" of a TF_CONFIG; "" when it has none, or is none.
std::string ModelDirOf(std::string_view tf_config);

// {"cluster": {...}, "task": {"type": "worker", "index": 0}, "environment": "cloud"}; "" for a job
// of one task, which is not distributed. With `spec.dynamic_workers` TFJob's sparse form: a worker
// sees itself and all ps, a ps itself. `cluster` may lack an evaluator whose address is not known
// yet. INVALID_ARGUMENT when indices of a type are not 0, 1, 2, ... or `task` is not in it.
absl::StatusOr<std::string> TfConfig(const JobSpec& spec, const Cluster& cluster, TaskId task,
                                     const TfConfigOptions& options = {});

// `argument` with {ps_hosts:,}, {worker_hosts:;}, {chief_hosts} (and master_, evaluator_), {type},
// {index} and {port} replaced; the text behind ':' joins the hosts, ',' when there is none. Other
// braces stay as they are.
std::string ExpandArgument(std::string_view argument, const Cluster& cluster, TaskId task);

// What kind of program the tasks are, for checks before anything starts.
enum class Expect { kAny, kEstimator, kMultiWorkerMirrored, kParameterServer };
// "estimator", "mwms", "psv2".
absl::StatusOr<Expect> ParseExpect(std::string_view name);

// What such a program would refuse, or wait for for ever: INVALID_ARGUMENT.
absl::Status CheckCluster(const JobSpec& spec, Expect expect);

}  // namespace muster::job
