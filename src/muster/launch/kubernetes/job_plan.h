// What one pass over a job decides: what was seen of its pods goes to job::Reconcile, and what that
// returns becomes calls of the API server. Pure functions.
//
// A pod's name is a mutex: there is one pod of a name, so a task's new incarnation starts when the
// pod of the old one is gone. A pod is deleted by its uid, never by its name alone. It runs after
// the status has named its uid (admission.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "muster/job/reconcile.h"
#include "muster/launch/kubernetes/job_cache.h"
#include "muster/launch/kubernetes/training_job.h"

namespace muster::launch::kubernetes {

struct NamedObject {
  std::string name = {};
  std::string uid = {};
  std::string reason = {};  // of a deletion, for messages
};

struct JobPlan {
  job::JobStatus status = {};                // to be written before anything else is done
  std::vector<job::TaskId> services = {};    // to be made
  AdmittedPods admitted = {};                // to be written with the status
  std::vector<NamedObject> admissions = {};  // pods whose gate is to be removed
  std::vector<TaskStart> pods = {};          // to be made
  std::vector<NamedObject> pod_deletions = {}, service_deletions = {};
  bool delete_job = false;
  std::map<std::string, std::string> problems = {};  // by task: why it does not start
  double wake_after = 0;                             // infinite: nothing is left to do
};

// The tasks that should have a pod of which nothing is known: an operator that has just started may
// not have seen it yet, or another pod has its name. Each must be asked for by name, and be known
// or in JobView::gone, before PlanJob() is called.
std::vector<TaskStart> FindUnseen(const TrainingJob& job, const job::JobStatus& status,
                                  const JobView& view);

// Whether the pod is that of the task's incarnation, or may become it.
bool IsPodOf(const PodRecord& pod, job::TaskId task, int64_t incarnation,
             const AdmittedPods& admitted);

// Whether a task's pod of this name may exist although the view has none, or has an older one that
// is gone.
bool MayHavePod(const std::string& name, const job::JobSpec& spec, const job::JobStatus& status,
                const JobView& view);

// Whether a pod is of an incarnation that this status does not know: the status is not the newest.
bool IsOlderThanItsPods(const job::JobStatus& status, const JobView& view);

JobPlan PlanJob(const TrainingJob& job, const job::JobStatus& status, const JobView& view,
                const job::Now& now);

// Whether two statuses differ in nothing but the time that has passed.
bool OnlyTimePassed(const job::JobStatus& before, const job::JobStatus& after);

// The `status` of a TFJob object: Kubeflow's fields, and below `muster` the state for the next
// pass, the admitted pods, the root cause of a failure and the problems.
Json MakeStatus(const job::JobSpec& spec, const job::JobStatus& status,
                const std::map<std::string, std::string>& problems,
                const AdmittedPods& admitted = {});
// In JobPlan::problems, where tasks are: what is wrong with the job's settings.
inline constexpr char kSettingsProblem[] = "spec";
// In status.muster: the Lease of the operators that run the job, "NAMESPACE/NAME".
inline constexpr char kLeaseField[] = "lease";
// The Lease that the status of a job names; "" for none.
std::string GetLease(const Json& job);
// Keeps so many problems that the status does not become too large by them.
void LimitProblems(std::map<std::string, std::string>* problems);
// A status that MakeStatus() has not made, or of which a part is hidden.
enum class ForeignStatus { kNone, kActive, kEnded };
ForeignStatus GetForeignStatus(const Json& object);
// The state that MakeStatus() has put into the object; that of a new job if there is none.
// INVALID_ARGUMENT if somebody has changed it.
absl::StatusOr<job::JobStatus> ReadState(const Json& object);

}  // namespace muster::launch::kubernetes
