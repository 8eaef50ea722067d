#include "muster/launch/kubernetes/job_controller.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "muster/launch/kubernetes/lost_state.h"

namespace muster::launch::kubernetes {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kOthersSeconds = 10;  // between two looks at another operator's job
constexpr char kStrict[] = "?fieldValidation=Strict";  // unknown fields are an error

}  // namespace

absl::StatusOr<double> JobController::Run(const std::string& key) {
  Pass pass = {.key = key, .view = env_.cache.View(key)};
  if (pass.view.object == nullptr) {
    if (env_.looks != nullptr) env_.looks->Forget(key);
    const MutexLock lock(&mutex_);
    if (known_.erase(key) > 0) env_.metrics.Count(JobCount::kDeleted, key.substr(0, key.find('/')));
    return kNever;
  }
  if (Child(Child(pass.object(), "metadata"), "deletionTimestamp").is_string()) return kNever;
  if (IsManagedElsewhere(pass.object())) return kNever;
  if (env_.owns && !env_.owns(GetNamespace(pass.object()))) return kNever;
  const std::string lease = GetLease(pass.object());
  if (env_.others != nullptr && !lease.empty() && lease != env_.lease) {
    MUSTER_ASSIGN_OR_RETURN(const bool run, env_.others->Run(lease, key));
    if (run) return kOthersSeconds;
  }
  if (GetForeignStatus(pass.object()) == ForeignStatus::kActive) {
    MUSTER_RETURN_IF_ERROR(LookForState(pass));
  }
  if (GetForeignStatus(pass.object()) == ForeignStatus::kEnded) return kNever;
  auto status = ReadState(pass.object());
  if (!status.ok()) {
    events_.TellLasting(pass.object(), "InvalidStatus", ToStd(status.status().message()));
    return kNever;
  }
  pass.status = *std::move(status);
  const job::Now now = {.wall = env_.clock.WallSeconds(),
                        .monotonic = static_cast<double>(env_.clock.MonotonicNanos()) * 1e-9,
                        .clock_id = env_.clock_id};
  if (HasLostItsState(pass.view)) pass.status = RebuildState(pass.view, now);
  if (const absl::Status read = ReadSettings(pass); !read.ok()) {
    MUSTER_RETURN_IF_ERROR(RefuseJob(pass, ToStd(read.message())));
    return kNever;
  }
  MUSTER_RETURN_IF_ERROR(SetRuntimeId(pass.object(), *pass.job));
  MUSTER_RETURN_IF_ERROR(CheckNewest(pass));
  MUSTER_RETURN_IF_ERROR(AskForUnseen(pass));
  const double look_after =
      env_.looks == nullptr ? kNever : env_.looks->Look(key, *pass.job, &pass.view);
  ExplainDeletions(pass);
  JobPlan plan = PlanJob(*pass.job, pass.status, pass.view, now);
  plan.problems.merge(GetProblems(key));
  if (!pass.invalid.empty()) plan.problems[kSettingsProblem] = pass.invalid;
  LimitProblems(&plan.problems);
  MUSTER_RETURN_IF_ERROR(WriteStatus(pass, plan));
  MUSTER_RETURN_IF_ERROR(Act(pass, plan));
  return std::min(plan.wake_after, look_after);
}

absl::StatusOr<std::shared_ptr<const TrainingJob>> JobController::ReadJob(
    const std::string& key, std::shared_ptr<const Json> object) {
  {
    const MutexLock lock(&mutex_);
    const Known& known = known_[key];
    if (known.job != nullptr && AreSameSettings(*known.object, *object)) return known.job;
  }
  MUSTER_ASSIGN_OR_RETURN(TrainingJob read, ReadTrainingJob(*object));
  auto job = std::make_shared<const TrainingJob>(std::move(read));
  for (const std::string& field : job->unknown_fields) {
    events_.TellLasting(*object, "UnknownField", StrCat(field, " is not known and has no effect"));
  }
  for (const auto& [type, replica] : job->spec.replicas) {
    if (!Child(Child(replica.pod_template, "spec"), "restartPolicy").is_string()) continue;
    events_.TellLasting(
        *object, "SetPodTemplateRestartPolicy",
        "Restart policy in pod template will be overwritten by restart policy in replica "
        "spec");
    break;
  }
  for (const std::string& note : job->notes) events_.Tell(*object, false, "Note", note);
  const MutexLock lock(&mutex_);
  known_[key] = {.object = std::move(object), .job = job};
  return job;
}

// v1alpha1's operator wrote into the spec how its pods are to be found.
absl::Status JobController::SetRuntimeId(const Json& object, const TrainingJob& job) {
  if (job.runtime_id.empty() || GetText(Child(object, "spec"), "RuntimeId") == job.runtime_id) {
    return absl::OkStatus();
  }
  MUSTER_RETURN_IF_ERROR(CheckLead());
  const Json patch = {{"metadata", {{"uid", job.uid}}}, {"spec", {{"RuntimeId", job.runtime_id}}}};
  auto changed =
      env_.client.MergePatch(GetTarget(kTfJobs, job.spec.name_space, job.spec.name), patch);
  MUSTER_RETURN_IF_ERROR(changed.status());
  env_.cache.SetJob(*std::move(changed), JobCache::Source::kAnswer);
  return absl::AbortedError("the job has a new version");
}

// The watch of pods may be ahead of that of jobs. By an old status a pod of a later decision would
// be a pod too many.
absl::Status JobController::CheckNewest(const Pass& pass) {
  if (!IsOlderThanItsPods(pass.status, pass.view)) return absl::OkStatus();
  auto object = env_.client.Get(GetTarget(kTfJobs, pass.name_space(), pass.job->spec.name));
  MUSTER_RETURN_IF_ERROR(object.status());
  if (GetVersion(*object) == GetVersion(pass.object())) return absl::OkStatus();
  env_.cache.SetJob(*std::move(object), JobCache::Source::kAnswer);
  return absl::AbortedError("the job has a new version");
}

absl::Status JobController::AskForUnseen(Pass& pass) {
  for (const TaskStart& start : FindUnseen(*pass.job, pass.status, pass.view)) {
    const std::string name = GetObjectName(pass.job->spec, start.task);
    auto pod = env_.client.Get(GetTarget(kPods, pass.name_space(), name));
    if (!pod.ok() && !absl::IsNotFound(pod.status())) return pod.status();
    if (pod.ok()) env_.cache.SetPod(*pod, JobCache::Source::kAnswer);
    const auto owner = pod.ok() ? FindOwner(*pod) : std::nullopt;
    const auto record = pod.ok() ? ReadPod(*pod) : std::nullopt;
    const bool is_ours = owner && owner->uid == pass.job->uid && record;
    if (is_ours) pass.view.pods[name] = *record;
    if (is_ours && IsPodOf(*record, start.task, start.incarnation, pass.view.admitted)) continue;
    pass.view.gone.push_back(start);
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> JobController::ReplaceStatus(const Json& object, Json status) {
  MUSTER_RETURN_IF_ERROR(CheckLead());
  Json body = {{"apiVersion", kTfJobs.group_version}, {"kind", "TFJob"}};
  body["metadata"] = {{"name", GetName(object)},
                      {"namespace", GetNamespace(object)},
                      {"uid", GetUid(object)},
                      {"resourceVersion", GetText(Child(object, "metadata"), "resourceVersion")}};
  body["status"] = std::move(status);
  // A definition that does not know status.muster would drop what is there, for good.
  auto written = env_.client.Replace(
      StrCat(GetTarget(kTfJobs, GetNamespace(object), GetName(object), "status"), kStrict), body);
  if (ToStd(written.status().message()).find("unknown field \"status.muster\"") !=
      std::string::npos) {
    return TellDropped(object);
  }
  if (ToStd(written.status().message()).find("too large") != std::string::npos) {
    events_.TellLasting(
        object, "StatusTooLarge",
        StrCat("what is to be said of its tasks is too large for the API server, so "
               "nothing is done about the job: give it fewer replicas (",
               ToStd(written.status().message()), ")"));
  }
  return written;
}

absl::Status JobController::WriteStatus(Pass& pass, const JobPlan& plan) {
  const auto before = pass.view.object;
  const Json& own = Child(Child(*before, "status"), "muster");
  const Json problems = plan.problems.empty() ? Json() : Json(plan.problems);
  const bool is_lost = HasLostItsState(pass.view);
  // Another operator may have begun this job, or an older one that named no lease: it is claimed.
  const bool is_claimed = GetLease(*before) == env_.lease;
  if (OnlyTimePassed(pass.status, plan.status) && Child(own, "problems") == problems &&
      plan.admitted == pass.view.admitted && !is_lost && is_claimed) {
    return absl::OkStatus();
  }
  Json status = MakeStatus(pass.job->spec, plan.status, plan.problems, plan.admitted);
  if (pass.most_workers) status["muster"][kMostWorkers] = *pass.most_workers;
  if (!pass.last_settings.is_null()) status["muster"]["lastSettings"] = pass.last_settings;
  if (!env_.lease.empty()) status["muster"][kLeaseField] = env_.lease;
  auto written = ReplaceStatus(pass.object(), std::move(status));
  MUSTER_RETURN_IF_ERROR(written.status());
  if (!Child(Child(*written, "status"), "muster").is_object()) {
    return TellDropped(pass.object());
  }
  pass.view.object = std::make_shared<const Json>(*written);
  env_.cache.SetJob(*std::move(written), JobCache::Source::kAnswer);
  if (is_lost) TellLost(pass.object());
  events_.TellChanges(pass.object(), pass.job->spec, pass.status, plan.status);
  events_.TellProblems(pass.object(), pass.view.pods, plan.problems, Child(own, "problems"));
  TellInvalid(pass, Child(own, "problems"));
  return absl::OkStatus();
}

absl::Status JobController::Act(Pass& pass, const JobPlan& plan) {
  MUSTER_RETURN_IF_ERROR(DeleteAll(pass, kPods, plan.pod_deletions));
  MUSTER_ASSIGN_OR_RETURN(const bool may_make, SyncGroup(pass, plan));
  if (may_make) {
    MUSTER_RETURN_IF_ERROR(MakeServices(pass, plan));
    MUSTER_ASSIGN_OR_RETURN(const bool has_secret, SyncSecret(pass, plan));
    if (has_secret) {
      MUSTER_RETURN_IF_ERROR(AdmitPods(pass, plan));
      MUSTER_RETURN_IF_ERROR(MakePods(pass, plan));
    }
  }
  MUSTER_RETURN_IF_ERROR(DeleteServices(pass, plan));
  if (!plan.delete_job) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(CheckLead());
  const absl::Status deleted =
      env_.client.Delete(GetTarget(kTfJobs, pass.name_space(), pass.job->spec.name), pass.job->uid);
  if (deleted.ok()) {
    events_.Tell(pass.object(), false, "SuccessfulDeleteJob",
                 StrCat("Deleted job: ", pass.job->spec.name));
  }
  return absl::IsNotFound(deleted) || absl::IsAborted(deleted) ? absl::OkStatus() : deleted;
}

absl::Status JobController::MakeServices(Pass& pass, const JobPlan& plan) {
  std::vector<std::string> made(plan.services.size());
  const absl::Status status = crew_.Run(plan.services.size(), [&](size_t number) {
    const job::TaskId task = plan.services[number];
    MUSTER_RETURN_IF_ERROR(CheckLead());
    const std::string name = GetObjectName(pass.job->spec, task);
    auto service =
        env_.client.Create(GetTarget(kServices, pass.name_space()), MakeService(*pass.job, task));
    if (service.ok()) {
      env_.cache.SetService(*service, JobCache::Source::kAnswer);
      made[number] = name;
      return absl::OkStatus();
    }
    const absl::Status outcome =
        absl::IsAlreadyExists(service.status()) ? Adopt(pass, kServices, name) : service.status();
    SetProblem(pass.key, job::TaskName(task), outcome);
    if (!outcome.ok()) {
      events_.TellLasting(pass.object(), "FailedCreateService", ToStd(outcome.message()));
    }
    return outcome;
  });
  events_.TellNames(pass.object(), "SuccessfulCreateService", "Created service: ", std::move(made));
  return status;
}

absl::Status JobController::AdmitPods(Pass& pass, const JobPlan& plan) {
  return crew_.Run(plan.admissions.size(), [&](size_t number) {
    const NamedObject& pod = plan.admissions[number];
    MUSTER_RETURN_IF_ERROR(CheckLead());
    auto admitted = env_.client.StrategicPatch(GetTarget(kPods, pass.name_space(), pod.name),
                                               MakeAdmissionPatch(pod.uid));
    // Gone already, or another one has the name by now: the watch will tell.
    if (absl::IsNotFound(admitted.status()) || absl::IsAborted(admitted.status())) {
      return absl::OkStatus();
    }
    MUSTER_RETURN_IF_ERROR(admitted.status());
    env_.cache.SetPod(*admitted, JobCache::Source::kAnswer);
    return absl::OkStatus();
  });
}

absl::Status JobController::MakePods(Pass& pass, const JobPlan& plan) {
  std::vector<std::string> made(plan.pods.size());
  const absl::Status status = crew_.Run(plan.pods.size(), [&](size_t number) {
    const TaskStart& start = plan.pods[number];
    MUSTER_RETURN_IF_ERROR(CheckLead());
    auto pod = MakePod(*pass.job, start.task, start.incarnation, env_.pods);
    const std::string name = GetObjectName(pass.job->spec, start.task);
    if (pod.ok()) {
      if (env_.groups != nullptr) env_.groups->Decorate(*pass.job, start.task, &*pod);
      AddAdmissionGate(&*pod);
      std::vector<std::string> warnings;
      pod = env_.client.Create(GetTarget(kPods, pass.name_space()), *pod, &warnings);
      events_.TellWarnings(pass.object(), start.task.type, warnings);
    }
    const absl::Status outcome =
        absl::IsAlreadyExists(pod.status()) ? Adopt(pass, kPods, name) : pod.status();
    SetProblem(pass.key, job::TaskName(start.task), outcome);
    if (pod.ok()) {
      env_.cache.SetPod(*pod, JobCache::Source::kAnswer);
      made[number] = name;
    } else if (!outcome.ok()) {
      events_.TellLasting(pass.object(), "FailedCreatePod", ToStd(outcome.message()));
    }
    return outcome;
  });
  events_.TellNames(pass.object(), "SuccessfulCreatePod", "Created pod: ", std::move(made));
  return status;
}

// Somebody has made the object before this call: if it is ours, it is known from now on.
absl::Status JobController::Adopt(Pass& pass, const KubeKind& kind, const std::string& name) {
  const auto object = env_.client.Get(GetTarget(kind, pass.name_space(), name));
  if (absl::IsNotFound(object.status())) return absl::AbortedError("it was deleted just now");
  MUSTER_RETURN_IF_ERROR(object.status());
  const auto owner = FindOwner(*object);
  if (owner && owner->name == pass.job->spec.name && owner->uid != pass.job->uid) {
    return absl::AbortedError(StrCat("waits for ", name, " of an earlier job of this name to go"));
  }
  if (!owner || owner->uid != pass.job->uid) {
    return absl::FailedPreconditionError(
        StrCat("there is another ", kind.plural == kPods.plural ? "pod" : "service", " ", name,
               ", which is not of this job: remove it, or give the job another name"));
  }
  if (kind.plural == kPods.plural) {
    env_.cache.SetPod(*object, JobCache::Source::kAnswer);
  } else {
    env_.cache.SetService(*object, JobCache::Source::kAnswer);
  }
  return absl::OkStatus();
}

absl::Status JobController::DeleteAll(Pass& pass, const KubeKind& kind,
                                      const std::vector<NamedObject>& objects) {
  std::vector<std::string> deleted;
  absl::Status status;
  const bool pods = kind.plural == kPods.plural;
  for (const NamedObject& object : objects) {
    if (status = CheckLead(); !status.ok()) break;
    status = env_.client.Delete(GetTarget(kind, pass.name_space(), object.name), object.uid);
    // Gone already, or another one has the name by now: the watch will tell.
    if (absl::IsNotFound(status) || absl::IsAborted(status)) status = absl::OkStatus();
    if (!status.ok()) break;
    deleted.push_back(object.name);
  }
  events_.TellNames(pass.object(), pods ? "SuccessfulDeletePod" : "SuccessfulDeleteService",
                    pods ? "Deleted pod: " : "Deleted service: ", deleted);
  return status;
}

// A service whose pod is gone. The watch of services may be ahead of that of pods: a pod that the
// operator has not seen is asked for.
absl::Status JobController::DeleteServices(Pass& pass, const JobPlan& plan) {
  std::vector<NamedObject> without_pod;
  for (const NamedObject& service : plan.service_deletions) {
    if (MayHavePod(service.name, pass.job->spec, plan.status, pass.view)) {
      const auto pod = env_.client.Get(GetTarget(kPods, pass.name_space(), service.name));
      if (!pod.ok() && !absl::IsNotFound(pod.status())) return pod.status();
      const auto owner = pod.ok() ? FindOwner(*pod) : std::nullopt;
      if (owner && owner->uid == pass.job->uid) {
        env_.cache.SetPod(*pod, JobCache::Source::kAnswer);
        continue;
      }
    }
    without_pod.push_back(service);
  }
  return DeleteAll(pass, kServices, without_pod);
}

absl::Status JobController::CheckLead() const {
  if (env_.leads()) return absl::OkStatus();
  return absl::AbortedError("another operator leads");
}

std::map<std::string, std::string> JobController::GetProblems(const std::string& key) const {
  const MutexLock lock(&mutex_);
  const auto found = known_.find(key);
  return found == known_.end() ? std::map<std::string, std::string>() : found->second.problems;
}

void JobController::SetProblem(const std::string& key, const std::string& task,
                               const absl::Status& status) {
  const MutexLock lock(&mutex_);
  auto& problems = known_[key].problems;
  if (status.ok()) {
    problems.erase(task);
  } else {
    problems[task] = ToStd(status.message());
  }
}

}  // namespace muster::launch::kubernetes
