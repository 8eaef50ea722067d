// The pods and services of a job's tasks, as TFJob v1 has them: names, labels, TF_CONFIG, ports,
// restart policies. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/job/job_spec.h"
#include "muster/job/tf_config.h"
#include "muster/launch/kubernetes/training_job.h"

namespace muster::launch::kubernetes {

// Labels and annotations of a task's objects.
inline constexpr std::string_view kOperatorLabel = "training.kubeflow.org/operator-name";
inline constexpr std::string_view kOperatorName = "tfjob-controller";
inline constexpr std::string_view kJobLabel = "training.kubeflow.org/job-name";
inline constexpr std::string_view kTypeLabel = "training.kubeflow.org/replica-type";
inline constexpr std::string_view kIndexLabel = "training.kubeflow.org/replica-index";
inline constexpr std::string_view kRoleLabel = "training.kubeflow.org/job-role";
// Which job of that name it is: services of a new job must not reach pods of the one before.
inline constexpr std::string_view kJobUidLabel = "muster/job-uid";
inline constexpr std::string_view kIncarnationAnnotation = "muster/incarnation";
inline constexpr std::string_view kContainerName = "tensorflow";

// The name of a task's pod and of its service: "JOB-worker-0".
std::string GetObjectName(const job::JobSpec& spec, job::TaskId task);

// The container of a task's template that is named tensorflow, or the only one; null: none.
const Json* FindContainer(const Json& pod_template);

// The words of a container's command and arguments.
std::vector<std::string> GetWords(const Json& container);

// Whether the kubelet starts a failed container again, and no new pod is made: as in Kubeflow,
// unless a setting of Muster's decides about failures. A native task needs a number that grows with
// each start, which a container that starts again does not get.
bool RestartsInPlace(const TrainingJob& job, job::TaskType type);

struct PodPlanOptions {
  std::string cluster_domain = {};  // "cluster.local": hosts are JOB-worker-0.NS.svc.cluster.local
};

// The ownerReferences of what belongs to the job.
Json MakeOwner(const TrainingJob& job);

// The names and ports of all tasks; of native workers, of as many as muster/workers allows, since
// those that come later must be known to those that run.
job::Cluster GetCluster(const TrainingJob& job, const PodPlanOptions& options);

// INVALID_ARGUMENT if the task is none of the job.
absl::StatusOr<Json> MakePod(const TrainingJob& job, job::TaskId task, int64_t incarnation,
                             const PodPlanOptions& options);
// The ownerReferences of what belongs to the job.
Json MakeOwner(const TrainingJob& job);
Json MakeService(const TrainingJob& job, job::TaskId task);

}  // namespace muster::launch::kubernetes
