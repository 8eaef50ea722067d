// Native tasks in pods: those that run `muster worker`. They need no agent. A Secret of the job has
// the key by which they authenticate to each other and certificates for the names of their pods;
// variables say where it is mounted and which task a pod is. Pure functions, but for random keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "muster/job/job_status.h"
#include "muster/launch/kubernetes/pod_plan.h"

namespace muster::launch::kubernetes {

// Whether the type's pods run `muster worker`: as their container's command says, or the job's
// annotation muster/native.
bool IsNative(const TrainingJob& job, job::TaskType type);

// How many workers a job may have at most while it runs; 0: as many as it began with. nullopt: its
// workers are not native, and their number may change.
std::optional<int> GetMostWorkers(const TrainingJob& job);
// The job with numbers of native tasks that agree with what its tasks were told when they began,
// where somebody has changed one that may not change; nullopt: nobody has. `most`: what
// GetMostWorkers() was then; nullopt: it is not known. `note` says what was changed in vain.
std::optional<TrainingJob> KeepTaskNumbers(const TrainingJob& job, const job::JobStatus& status,
                                           std::optional<int> most, std::string* note);

// Whether the type's pods mount the job's Secret: those of native tasks that have others to talk
// to, and no key of their own (MUSTER_KEY_FILE in the template).
bool UsesSecret(const TrainingJob& job, job::TaskType type);
// Whether pods of any type do.
bool NeedsSecret(const TrainingJob& job);

// "JOB-muster-UID": the uid's first part tells it from that of an earlier job of the same name, so
// that nobody has to read it.
std::string GetSecretName(const TrainingJob& job);

// The Secret without its data, which takes no time to make: to ask whether there is one.
Json MakeEmptySecret(const TrainingJob& job);
// A new Secret, owned by the job and immutable: data_key, ca.pem, and certificate and key as server
// and as client for all tasks that the job may have. The authority's key is not kept.
absl::StatusOr<Json> MakeSecret(const TrainingJob& job, const PodPlanOptions& options);

// Mounts the Secret into the native task's container and sets the variables of `muster worker`.
// Variables that the template has stay as they are. `is_alone`: there is no other task.
void AddNativeTask(const TrainingJob& job, job::TaskId task, int64_t incarnation, bool is_alone,
                   Json* pod_template);

}  // namespace muster::launch::kubernetes
