// The environment variables by which TonY tells a task its place in the cluster, for programs that
// were written for TonY and do not read TF_CONFIG. Source: https://github.com/tony-framework/TonY,
// runtime/TFRuntime.java, ApplicationMaster.java and TonySession.java (isChief).
//
//   CLUSTER_SPEC  {"ps":["host2:2222"],"worker":["host0:2222","host1:2222"]}
//   JOB_NAME      worker
//   TASK_INDEX    1
//   TASK_NUM      2, the tasks of the job without parameter servers
//   SESSION_ID    0, and a greater number each time that all tasks are started again
//   IS_CHIEF      true: of the chief alone, or of the first worker of a job without one
//   DISTRIBUTED_MODE  GANG
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/job/tf_config.h"

namespace muster::job {

inline constexpr char kTonyChiefVariable[] = "IS_CHIEF";

// `cluster` has the task. As in TF_CONFIG, an evaluator is in the cluster of the others only if
// `options` say so. `session` is SESSION_ID.
std::vector<std::pair<std::string, std::string>> GetTonyEnvironment(const JobSpec& spec,
                                                                    const Cluster& cluster,
                                                                    TaskId task, int session,
                                                                    const TfConfigOptions& options);

}  // namespace muster::job
