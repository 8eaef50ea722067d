// The pods and services of a job's tasks, as TFJob v1 has them: names, labels, TF_CONFIG, ports,
// restart policies. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "muster/job/job_spec.h"
#include "muster/launch/kubernetes/training_job.h"

namespace muster::launch::kubernetes {

// Labels and annotations of a task's objects.
inline constexpr std::string_view kOperatorLabel = "training.kubeflow.org/operator-name";
inline constexpr std::string_view kOperatorName = "tfjob-controller";
inline constexpr std::string_view kJobLabel = "training.kubeflow.org/job-name";
inline constexpr std::string_view kTypeLabel = "training.kubeflow.org/replica-type";
inline constexpr std::string_view kIndexLabel = "training.kubeflow.org/replica-index";
inline constexpr std::string_view kRoleLabel = "training.kubeflow.org/job-role";
inline constexpr std::string_view kIncarnationAnnotation = "muster/incarnation";
inline constexpr std::string_view kContainerName = "tensorflow";

// The name of a task's pod and of its service: "JOB-worker-0".
std::string GetObjectName(const job::JobSpec& spec, job::TaskId task);

// Whether the kubelet starts a failed container again, and no new pod is made: as in Kubeflow,
// unless a setting of Muster's decides about failures.
bool RestartsInPlace(const job::JobSpec& spec, job::TaskType type);

struct PodPlanOptions {
  std::string cluster_domain = {};  // "cluster.local": hosts are JOB-worker-0.NS.svc.cluster.local
};

// INVALID_ARGUMENT if the task is none of the job.
absl::StatusOr<Json> MakePod(const TrainingJob& job, job::TaskId task, int64_t incarnation,
                             const PodPlanOptions& options);
Json MakeService(const TrainingJob& job, job::TaskId task);

}  // namespace muster::launch::kubernetes
