#include "muster/launch/kubernetes/place/kubernetes_place.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/base/clock.h"
#include "muster/base/nearest.h"
#include "muster/launch/kubernetes/job_plan.h"
#include "muster/launch/kubernetes/place/operator_lease.h"
#include "muster/launch/kubernetes/place/template_check.h"
#include "muster/launch/kubernetes/pod_plan.h"
#include "muster/launch/kubernetes/training_job.h"
#include "muster/process/deadline.h"

namespace muster::launch::kubernetes {
namespace {

using std::chrono::steady_clock;

constexpr auto kPodsAge = std::chrono::seconds(1);  // a list of pods that is older is made anew
constexpr int kEndLookMillis = 250;
constexpr size_t kMaxNamesInSelector = 100;  // a name has 63 characters, and a URL some 8,000

std::string PodSelector(const std::string& job) {
  return StrCat(kOperatorLabel, "=", kOperatorName, ",", kJobLabel, "=", job);
}

// Of a job's description.
bool IsOver(const Json& described) {
  const std::string phase = GetText(described, "phase");
  return phase == "succeeded" || phase == "failed";
}

}  // namespace

absl::Status KubernetesPlace::DescribeAbsence() const {
  std::vector<std::string> names;
  const auto listed = cluster_.client->List(
      GetTarget(kTfJobs, cluster_.name_space), "", [&] { names.clear(); },
      [&](const Json& job) { names.push_back(GetName(job)); });
  const std::string where = StrCat("there is no job ", name_, " in the namespace ",
                                   cluster_.name_space, " of ", cluster_.access().source);
  if (!listed.ok()) return absl::NotFoundError(where);
  std::string known = DidYouMean(name_, names);
  if (names.empty()) known = " (it has none)";
  return absl::NotFoundError(StrCat(where, known));
}

absl::StatusOr<Json> KubernetesPlace::GetJob() {
  auto job = cluster_.client->Get(GetTarget(kTfJobs, cluster_.name_space, name_));
  if (absl::IsNotFound(job.status())) {
    const absl::Status advised = AddAdvice(job.status(), cluster_);
    return advised == job.status() ? DescribeAbsence() : advised;
  }
  if (!job.ok()) return AddAdvice(job.status(), cluster_);
  if (uid_.empty()) uid_ = GetUid(*job);
  if (GetUid(*job) != uid_) {
    return absl::NotFoundError(StrCat("the job ", name_, " in the namespace ", cluster_.name_space,
                                      " was removed; another one has its name now"));
  }
  return job;
}

absl::Status KubernetesPlace::ListPods(const Json& job) {
  std::vector<Json> pods;
  const auto listed = cluster_.client->List(
      GetTarget(kPods, cluster_.name_space), PodSelector(name_), [&] { pods.clear(); },
      [&](Json pod) { pods.push_back(std::move(pod)); });
  if (!listed.ok()) return AddAdvice(listed.status(), cluster_);
  pods_ = ReadPods(job, pods);
  pods_at_ = steady_clock::now();
  return absl::OkStatus();
}

absl::StatusOr<Json> KubernetesPlace::Describe() {
  MUSTER_ASSIGN_OR_RETURN(job_, GetJob());
  // Without the right to see pods the operator's words are shown.
  const absl::Status listed = ListPods(job_);
  if (absl::IsUnavailable(listed)) return listed;
  const double now = SystemClock().WallSeconds();
  described_ = DescribeTfJob(job_, pods_, now);
  if (IsOver(described_)) {
    DescribeRest(pods_, &described_);
    return described_;
  }
  std::map<std::string, bool> missing;
  AddMissingClaims(job_, cluster_, &missing, &described_);
  const std::string silence = LookForOperator(GetLease(job_), cluster_, now);
  if (!silence.empty()) {
    DescribeSilence(silence, listed.ok() ? std::optional(pods_) : std::nullopt, &described_);
  }
  return described_;
}

absl::Status KubernetesPlace::Patch(Json patch) {
  patch["metadata"]["uid"] = uid_;  // another job of this name is not changed
  const auto changed =
      cluster_.client->MergePatch(GetTarget(kTfJobs, cluster_.name_space, name_), patch);
  return changed.ok() ? absl::OkStatus() : AddAdvice(changed.status(), cluster_);
}

absl::Status KubernetesPlace::Stop(const std::string& why) {
  MUSTER_ASSIGN_OR_RETURN(const Json job, Describe());
  if (IsOver(job) && ListRunningTasks(pods_).empty()) return absl::OkStatus();
  const Json& annotations = Child(Child(job_, "metadata"), "annotations");
  if (Child(annotations, "muster/stop").is_string()) return absl::OkStatus();
  return Patch({{"metadata", {{"annotations", {{"muster/stop", why}}}}}});
}

absl::Status KubernetesPlace::Suspend(bool suspended) {
  MUSTER_ASSIGN_OR_RETURN(const Json job, Describe());
  if (IsOver(job)) {
    return absl::FailedPreconditionError(
        StrCat("the job ", name_, " has ended (", GetText(job, "phase"),
               "): there is nothing to suspend or to resume; muster rm ", name_, " removes it"));
  }
  if (Child(Child(job_, "spec"), "replicaSpecs").is_array()) {
    return absl::FailedPreconditionError(
        StrCat("the job ", name_,
               " is in the form of v1alpha1, which has no suspend: write it as "
               "kubeflow.org/v1, or stop it"));
  }
  return Patch({{"spec", {{"runPolicy", {{"suspend", suspended}}}}}});
}

absl::Status KubernetesPlace::Resume() {
  MUSTER_ASSIGN_OR_RETURN(const Json job, Describe());
  const bool is_suspended = Child(Child(Child(job_, "spec"), "runPolicy"), "suspend") == true;
  if (!IsOver(job) && !is_suspended) {
    return absl::FailedPreconditionError(StrCat("the job ", name_, " is not suspended"));
  }
  return Suspend(false);
}

absl::StatusOr<std::string> KubernetesPlace::Remove(bool) {
  const auto job = Describe();
  // It may have been removed by kubectl, or when its time to live was over: nothing is left.
  if (absl::IsNotFound(job.status()) && !uid_.empty()) return std::string();
  MUSTER_RETURN_IF_ERROR(job.status());
  // Without an operator nothing has begun, and nobody would stop it.
  const bool has_begun = Child(Child(job_, "status"), "muster").is_object() || !pods_.empty();
  if (!IsOver(*job) && has_begun) {
    return absl::FailedPreconditionError(
        StrCat("the job ", name_, " has not ended: muster stop ", name_, " ends it"));
  }
  const absl::Status deleted =
      cluster_.client->Delete(GetTarget(kTfJobs, cluster_.name_space, name_), uid_);
  if (deleted.ok() || absl::IsNotFound(deleted) || absl::IsAborted(deleted)) return std::string();
  return AddAdvice(deleted, cluster_);
}

absl::StatusOr<std::unique_ptr<control::LogSource>> KubernetesPlace::OpenLog(job::TaskId task) {
  if (described_.is_null()) MUSTER_RETURN_IF_ERROR(Describe().status());
  const Json& tasks = Child(described_, "tasks");
  const bool is_known = std::any_of(tasks.begin(), tasks.end(), [&](const Json& each) {
    return GetText(each, "task") == job::TaskName(task);
  });
  if (!is_known) {
    return absl::NotFoundError(StrCat("the job ", name_, " has no task ", job::TaskName(task)));
  }
  PodLookup& lookup = *this;
  return std::make_unique<PodLogSource>(task, StrCat(name_, "-", job::TaskName(task)),
                                        cluster_.name_space, cluster_.access(), lookup, notice_);
}

absl::StatusOr<std::optional<PodInfo>> KubernetesPlace::FindPod(job::TaskId task) {
  if (steady_clock::now() > pods_at_ + kPodsAge) MUSTER_RETURN_IF_ERROR(ListPods(job_));
  const auto found = pods_.find(task);
  return found == pods_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> KubernetesPlace::DescribeLoss(job::TaskId task) const {
  return DescribeLostPod(job_, described_, job::TaskName(task));
}

absl::Status KubernetesPlace::Explain(const absl::Status& status) const {
  return AddAdvice(status, cluster_);
}

bool KubernetesPlace::WaitForEnd(double seconds) {
  const auto deadline = process::Deadline::After(seconds);
  while (true) {
    const auto job = GetJob();
    if (absl::IsNotFound(job.status())) return true;
    if (job.ok()) {
      job_ = *job;
      if (IsOver(DescribeTfJob(job_, pods_, SystemClock().WallSeconds()))) return true;
    }
    if (deadline.expired()) return false;
    const int wait = std::min(deadline.PollMillis(), kEndLookMillis);
    if (poll(nullptr, 0, std::max(wait, 1)) < 0) return false;  // a signal
  }
}

namespace {

// The pods of the namespace that Muster's operator has made, by the names of their jobs.
absl::StatusOr<std::map<std::string, std::vector<Json>>> ListPodsByJob(
    Cluster& cluster, const std::map<std::string, std::string>& wanted) {
  std::string selector = StrCat(kOperatorLabel, "=", kOperatorName);
  if (!wanted.empty() && wanted.size() <= kMaxNamesInSelector) {
    const std::string names = absl::StrJoin(
        wanted, ",", [](std::string* out, const auto& job) { out->append(job.first); });
    selector += StrCat(",", kJobLabel, " in (", names, ")");
  }
  std::map<std::string, std::vector<Json>> by_job;
  const auto listed = cluster.client->List(
      GetTarget(kPods, cluster.name_space), selector, [&] { by_job.clear(); },
      [&](Json pod) {
        const std::string job = GetText(Child(Child(pod, "metadata"), "labels"), kJobLabel);
        by_job[job].push_back(std::move(pod));
      });
  if (!listed.ok()) return AddAdvice(listed.status(), cluster);
  return by_job;
}

bool IsWanted(const Json& job, const std::map<std::string, std::string>& wanted) {
  if (wanted.empty()) return true;
  const auto found = wanted.find(GetName(job));
  return found != wanted.end() && (found->second.empty() || found->second == GetUid(job));
}

}  // namespace

absl::StatusOr<std::vector<Json>> DescribeJobs(Cluster& cluster,
                                               const std::map<std::string, std::string>& wanted) {
  std::vector<Json> jobs;
  const auto listed = cluster.client->List(
      GetTarget(kTfJobs, cluster.name_space), "", [&] { jobs.clear(); },
      [&](Json job) {
        if (IsWanted(job, wanted)) jobs.push_back(std::move(job));
      });
  if (!listed.ok()) return AddAdvice(listed.status(), cluster);
  std::vector<Json> described;
  if (jobs.empty()) return described;
  const auto pods = ListPodsByJob(cluster, wanted);
  if (absl::IsUnavailable(pods.status())) return pods.status();
  std::map<std::string, bool> missing;          // by claim: AddMissingClaims()
  std::map<std::string, std::string> silences;  // by lease: LookForOperator()
  const double now = SystemClock().WallSeconds();
  for (const Json& job : jobs) {
    std::optional<std::map<job::TaskId, PodInfo>> known;
    if (pods.ok()) {
      const auto of_job = pods->find(GetName(job));
      known =
          of_job == pods->end() ? std::map<job::TaskId, PodInfo>() : ReadPods(job, of_job->second);
    }
    described.push_back(DescribeTfJob(job, known.value_or(std::map<job::TaskId, PodInfo>()), now));
    if (IsOver(described.back())) continue;
    AddMissingClaims(job, cluster, &missing, &described.back());
    const auto [silence, is_new] = silences.try_emplace(GetLease(job));
    if (is_new) silence->second = LookForOperator(silence->first, cluster, now);
    if (!silence->second.empty()) DescribeSilence(silence->second, known, &described.back());
  }
  return described;
}

}  // namespace muster::launch::kubernetes
