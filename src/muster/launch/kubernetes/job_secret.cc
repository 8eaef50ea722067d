// What the JobController does about the Secret of a job's native tasks.
//
// Each Secret has an authority of its own, and tasks of two Secrets refuse each other. So one is
// made only while no pod lives that may have an older one. As long as such a pod lives, the call is
// a dry run: it says whether the Secret is there, makes nothing, and needs no right to read. An
// operator may end between any two of these calls: a new Secret never exists beside an old pod.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"

#include "muster/launch/kubernetes/job_controller.h"
#include "muster/launch/kubernetes/native_pod.h"

namespace muster::launch::kubernetes {
namespace {

using Phase = job::TaskObservation::Phase;

constexpr char kSecretProblem[] = "secret";  // in JobPlan::problems, where tasks are
constexpr char kDryRun[] = "?dryRun=All";

// Whether the pod may have read the Secret, and may still run.
bool MayHaveSecret(const TrainingJob& job, const AdmittedPods& admitted, const PodRecord& pod) {
  if (pod.phase == Phase::kEnded || IsGone(pod) || !UsesSecret(job, pod.task.type)) return false;
  // A watch may be late to say that the gate of an admitted pod is gone.
  const auto named = admitted.find(pod.task);
  return !pod.gated || (named != admitted.end() && named->second == pod.uid);
}

// Whether a kubelet has said that it looks for the Secret in vain.
bool IsMissed(const std::string& secret, const JobView& view) {
  for (const auto& [name, pod] : view.pods) {
    if (absl::StrContains(pod.problem, StrCat("secret \"", secret, "\" not found"))) return true;
  }
  return false;
}

// Whether a task that uses the Secret may be started once alone.
bool HasTaskOfOneStart(const TrainingJob& job) {
  return std::any_of(job.spec.replicas.begin(), job.spec.replicas.end(), [&](const auto& replica) {
    return replica.second.restart_policy == job::RestartPolicy::kNever &&
           UsesSecret(job, replica.first);
  });
}

}  // namespace

void JobController::ExplainDeletions(Pass& pass) const {
  const auto problems = GetProblems(pass.key);
  const auto lost = problems.find(kSecretProblem);
  if (lost == problems.end()) return;
  for (auto& [name, pod] : pass.view.pods) {
    if (pod.end.detail == kPodWasDeleted && UsesSecret(*pass.job, pod.task.type)) {
      pod.end.detail += StrCat(": ", lost->second);
    }
  }
}

// What is said of a lost Secret stays in the status until all tasks have new pods. The name is this
// job's alone, so a Secret that exists is the right one and need not be read.
absl::StatusOr<bool> JobController::SyncSecret(Pass& pass, const JobPlan& plan) {
  if (!NeedsSecret(*pass.job)) return true;
  const std::string name = GetSecretName(*pass.job);
  if (plan.pods.empty() && !IsMissed(name, pass.view)) {
    SetProblem(pass.key, kSecretProblem, absl::OkStatus());
    return true;
  }
  bool has_holder = false;
  std::vector<NamedObject> holders;  // that are not being deleted yet
  for (const auto& [pod_name, pod] : pass.view.pods) {
    if (!MayHaveSecret(*pass.job, plan.admitted, pod)) continue;
    has_holder = true;
    if (!pod.deleting) holders.push_back({.name = pod_name, .uid = pod.uid});
  }
  MUSTER_RETURN_IF_ERROR(CheckLead());
  auto secret = has_holder ? absl::StatusOr<Json>(MakeEmptySecret(*pass.job))
                           : MakeSecret(*pass.job, env_.pods);
  if (secret.ok()) {
    const std::string target = GetTarget(kSecrets, pass.name_space());
    secret = env_.client.Create(StrCat(target, has_holder ? kDryRun : ""), *secret);
  }
  if (absl::IsAlreadyExists(secret.status()) || (secret.ok() && !has_holder)) return true;
  if (!secret.ok()) {
    const absl::Status status = Annotate(secret.status(), "the Secret of its native tasks");
    SetProblem(pass.key, kSecretProblem, status);
    events_.TellLasting(pass.object(), "FailedCreateSecret", ToStd(status.message()));
    return status;
  }
  const std::string lost =
      StrCat("the Secret ", name, " was deleted while the job ran",
             HasTaskOfOneStart(*pass.job) ? ", and its tasks may not start again with a new one"
                                          : ": all its tasks start again with a new one");
  SetProblem(pass.key, kSecretProblem, absl::FailedPreconditionError(lost));
  events_.TellLasting(pass.object(), "SecretLost", lost);
  MUSTER_RETURN_IF_ERROR(DeleteAll(pass, kPods, holders));
  return false;
}

}  // namespace muster::launch::kubernetes
