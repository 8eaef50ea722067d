#include "muster/launch/kubernetes/job_controller.h"

namespace muster::launch::kubernetes {
namespace {

constexpr char kGroupProblem[] = "PodGroup";  // in status.muster.problems, where tasks are

}  // namespace

// The group of a job lives while the job may make pods.
absl::StatusOr<bool> JobController::SyncGroup(const Pass& pass, const JobPlan& plan) {
  if (env_.groups == nullptr) return true;
  MUSTER_RETURN_IF_ERROR(CheckLead());
  const job::JobPhase phase = plan.status.phase;
  const bool lives = (phase == job::JobPhase::kActive && !pass.job->spec.suspend) ||
                     phase == job::JobPhase::kFinishing;
  if (!lives) {
    MUSTER_ASSIGN_OR_RETURN(const bool deleted, env_.groups->Delete(*pass.job));
    if (deleted) {
      events_.Tell(pass.object(), false, "JobTerminated",
                   "Job has been terminated. Deleting PodGroup");
      events_.Tell(pass.object(), false, "SuccessfulDeletePodGroup",
                   StrCat("Deleted PodGroup: ", pass.job->spec.name));
    }
    return true;
  }
  const absl::Status synced = env_.groups->Sync(*pass.job, pass.object());
  if (!synced.ok() && !absl::IsUnavailable(synced)) return synced;
  SetProblem(pass.key, kGroupProblem, synced);
  if (synced.ok() && !plan.pods.empty() && env_.groups->HasOtherScheduler(*pass.job)) {
    events_.Tell(
        pass.object(), true, "SetPodTemplateSchedulerName",
        "Another scheduler is specified when gang-scheduling is enabled and it will not be "
        "overwritten");
  }
  return synced.ok();
}

}  // namespace muster::launch::kubernetes
