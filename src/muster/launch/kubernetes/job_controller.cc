#include "muster/launch/kubernetes/job_controller.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/time/time.h"

namespace muster::launch::kubernetes {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kMaxMessageBytes = 1000;  // of an event; the server refuses 1,024 and more
constexpr size_t kMaxNames = 20;           // in an event's message

// Whether the two objects are the same job with the same settings.
bool AreSameSettings(const Json& a, const Json& b) {
  const Json& one = Child(a, "metadata");
  const Json& other = Child(b, "metadata");
  return UidOf(a) == UidOf(b) && Child(a, "spec") == Child(b, "spec") &&
         Child(one, "annotations") == Child(other, "annotations") &&
         Child(one, "labels") == Child(other, "labels");
}

std::string Timestamp(double wall_seconds) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ",
                          absl::FromUnixSeconds(static_cast<int64_t>(wall_seconds)),
                          absl::UTCTimeZone());
}

int CountRestarts(const job::JobStatus& status) {
  int sum = 0;
  for (const auto& [id, task] : status.tasks) sum += task.restarts + task.disruptions;
  return sum;
}

}  // namespace

// A pass over one job.
struct JobController::Pass {
  const std::string& key;
  JobView view = {};
  std::shared_ptr<const TrainingJob> job = {};
  job::JobStatus status = {};

  const Json& object() const { return *view.object; }
  const std::string& name_space() const { return job->spec.name_space; }
};

absl::StatusOr<double> JobController::Run(const std::string& key) {
  Pass pass = {.key = key, .view = env_.cache.View(key)};
  if (pass.view.object == nullptr) {
    const MutexLock lock(&mutex_);
    if (known_.erase(key) > 0) env_.metrics.Count(JobCount::kDeleted, key.substr(0, key.find('/')));
    return kNever;
  }
  if (Child(Child(pass.object(), "metadata"), "deletionTimestamp").is_string()) return kNever;
  if (IsManagedElsewhere(pass.object())) return kNever;
  auto job = ReadJob(key, pass.view.object);
  if (!job.ok()) {
    MUSTER_RETURN_IF_ERROR(RefuseJob(pass.object(), ToStd(job.status().message())));
    return kNever;
  }
  pass.job = *std::move(job);
  auto status = ReadState(pass.object());
  if (!status.ok()) {
    Tell(pass.object(), true, "InvalidStatus", ToStd(status.status().message()));
    return kNever;
  }
  pass.status = *std::move(status);
  MUSTER_RETURN_IF_ERROR(SetRuntimeId(pass.object(), *pass.job));
  MUSTER_RETURN_IF_ERROR(AskForUnseen(pass));
  const job::Now now = {.wall = env_.clock.WallSeconds(),
                        .monotonic = static_cast<double>(env_.clock.MonotonicNanos()) * 1e-9,
                        .clock_id = env_.clock_id};
  JobPlan plan = PlanJob(*pass.job, pass.status, pass.view, now);
  plan.problems.merge(GetProblems(key));
  MUSTER_RETURN_IF_ERROR(WriteStatus(pass, plan));
  MUSTER_RETURN_IF_ERROR(Act(pass, plan));
  return plan.wake_after;
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
    Tell(*object, true, "UnknownField", StrCat(field, " is not known and has no effect"));
  }
  for (const std::string& note : job->notes) Tell(*object, false, "Note", note);
  const MutexLock lock(&mutex_);
  known_[key] = {.object = std::move(object), .job = job};
  return job;
}

// A job that cannot be read fails; one that already runs stays as it is.
absl::Status JobController::RefuseJob(const Json& object, std::string_view why) {
  auto status = ReadState(object);
  if (!status.ok() || status->ended()) return absl::OkStatus();
  Tell(object, true, "FailedValidation", why);
  if (!status->tasks.empty()) return absl::OkStatus();
  const double now = env_.clock.WallSeconds();
  status->phase = job::JobPhase::kFailed;
  status->failure_message = why;
  status->completion_time = now;
  status->conditions = {{"Failed", true, "TFJobFailed", std::string(why), now, now}};
  MUSTER_ASSIGN_OR_RETURN(Json written, ReplaceStatus(object, MakeStatus({}, *status, {})));
  env_.metrics.Count(JobCount::kFailed, NamespaceOf(object));
  env_.cache.SetJob(std::move(written));
  return absl::OkStatus();
}

// v1alpha1's operator wrote into the spec how its pods are to be found.
absl::Status JobController::SetRuntimeId(const Json& object, const TrainingJob& job) {
  if (job.runtime_id.empty() || TextOf(Child(object, "spec"), "RuntimeId") == job.runtime_id) {
    return absl::OkStatus();
  }
  MUSTER_RETURN_IF_ERROR(CheckLead());
  const Json patch = {{"metadata", {{"uid", job.uid}}}, {"spec", {{"RuntimeId", job.runtime_id}}}};
  auto changed =
      env_.client.MergePatch(GetTarget(kTfJobs, job.spec.name_space, job.spec.name), patch);
  MUSTER_RETURN_IF_ERROR(changed.status());
  env_.cache.SetJob(*std::move(changed));
  return absl::AbortedError("the job has a new version");
}

absl::Status JobController::AskForUnseen(Pass& pass) {
  for (const TaskStart& start : FindUnseen(*pass.job, pass.status, pass.view)) {
    const std::string name = GetObjectName(pass.job->spec, start.task);
    auto pod = env_.client.Get(GetTarget(kPods, pass.name_space(), name));
    if (!pod.ok() && !absl::IsNotFound(pod.status())) return pod.status();
    if (pod.ok()) env_.cache.SetPod(*pod);
    const auto owner = pod.ok() ? FindOwner(*pod) : std::nullopt;
    const auto record = pod.ok() ? ReadPod(*pod) : std::nullopt;
    const bool is_ours = owner && owner->uid == pass.job->uid && record;
    if (is_ours) pass.view.pods[name] = *record;
    if (!is_ours || record->incarnation != start.incarnation) pass.view.gone.push_back(start);
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> JobController::ReplaceStatus(const Json& object, Json status) {
  MUSTER_RETURN_IF_ERROR(CheckLead());
  Json body = {{"apiVersion", kTfJobs.group_version}, {"kind", "TFJob"}};
  body["metadata"] = {{"name", NameOf(object)},
                      {"namespace", NamespaceOf(object)},
                      {"uid", UidOf(object)},
                      {"resourceVersion", TextOf(Child(object, "metadata"), "resourceVersion")}};
  body["status"] = std::move(status);
  return env_.client.Replace(GetTarget(kTfJobs, NamespaceOf(object), NameOf(object), "status"),
                             body);
}

absl::Status JobController::WriteStatus(Pass& pass, const JobPlan& plan) {
  const Json& own = Child(Child(pass.object(), "status"), "muster");
  const Json problems = plan.problems.empty() ? Json() : Json(plan.problems);
  if (OnlyTimePassed(pass.status, plan.status) && Child(own, "problems") == problems) {
    return absl::OkStatus();
  }
  auto written =
      ReplaceStatus(pass.object(), MakeStatus(pass.job->spec, plan.status, plan.problems));
  MUSTER_RETURN_IF_ERROR(written.status());
  if (!Child(Child(*written, "status"), "muster").is_object()) {
    return absl::FailedPreconditionError(
        "the CustomResourceDefinition tfjobs.kubeflow.org does not keep status.muster: install "
        "Muster's, kubectl apply -f deploy/kubernetes/crd.yaml");
  }
  pass.view.object = std::make_shared<const Json>(*written);
  env_.cache.SetJob(*std::move(written));
  TellChanges(pass, pass.status, plan.status);
  return absl::OkStatus();
}

absl::Status JobController::Act(Pass& pass, const JobPlan& plan) {
  MUSTER_RETURN_IF_ERROR(DeleteAll(pass, kPods, plan.pod_deletions));
  MUSTER_RETURN_IF_ERROR(MakeServices(pass, plan));
  MUSTER_RETURN_IF_ERROR(MakePods(pass, plan));
  MUSTER_RETURN_IF_ERROR(DeleteAll(pass, kServices, plan.service_deletions));
  if (!plan.delete_job) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(CheckLead());
  const absl::Status deleted =
      env_.client.Delete(GetTarget(kTfJobs, pass.name_space(), pass.job->spec.name), pass.job->uid);
  return absl::IsNotFound(deleted) || absl::IsAborted(deleted) ? absl::OkStatus() : deleted;
}

absl::Status JobController::MakeServices(Pass& pass, const JobPlan& plan) {
  std::vector<std::string> made;
  absl::Status status;
  for (const job::TaskId task : plan.services) {
    if (status = CheckLead(); !status.ok()) break;
    const std::string name = GetObjectName(pass.job->spec, task);
    auto service =
        env_.client.Create(GetTarget(kServices, pass.name_space()), MakeService(*pass.job, task));
    if (service.ok()) {
      env_.cache.SetService(*service);
      made.push_back(name);
      continue;
    }
    status =
        absl::IsAlreadyExists(service.status()) ? Adopt(pass, kServices, name) : service.status();
    SetProblem(pass.key, job::TaskName(task), status);
    if (status.ok()) continue;
    Tell(pass.object(), true, "FailedCreateService", ToStd(status.message()));
    break;
  }
  TellNames(pass, "SuccessfulCreateService", "Created service: ", made);
  return status;
}

absl::Status JobController::MakePods(Pass& pass, const JobPlan& plan) {
  std::vector<std::string> made;
  absl::Status status;
  for (const TaskStart& start : plan.pods) {
    if (status = CheckLead(); !status.ok()) break;
    auto pod = MakePod(*pass.job, start.task, start.incarnation, env_.pods);
    const std::string name = GetObjectName(pass.job->spec, start.task);
    if (pod.ok()) pod = env_.client.Create(GetTarget(kPods, pass.name_space()), *pod);
    status = absl::IsAlreadyExists(pod.status()) ? Adopt(pass, kPods, name) : pod.status();
    SetProblem(pass.key, job::TaskName(start.task), status);
    if (pod.ok()) {
      env_.cache.SetPod(*pod);
      made.push_back(name);
    } else if (!status.ok()) {
      Tell(pass.object(), true, "FailedCreatePod", ToStd(status.message()));
      break;
    }
  }
  TellNames(pass, "SuccessfulCreatePod", "Created pod: ", made);
  return status;
}

// Somebody has made the object before this call: if it is ours, it is known from now on.
absl::Status JobController::Adopt(Pass& pass, const KubeKind& kind, const std::string& name) {
  const auto object = env_.client.Get(GetTarget(kind, pass.name_space(), name));
  if (absl::IsNotFound(object.status())) return absl::AbortedError("it was deleted just now");
  MUSTER_RETURN_IF_ERROR(object.status());
  const auto owner = FindOwner(*object);
  if (!owner || owner->uid != pass.job->uid) {
    return absl::FailedPreconditionError(
        StrCat("there is another ", kind.plural == kPods.plural ? "pod" : "service", " ", name,
               ", which is not of this job: remove it, or give the job another name"));
  }
  if (kind.plural == kPods.plural) {
    env_.cache.SetPod(*object);
  } else {
    env_.cache.SetService(*object);
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
  TellNames(pass, pods ? "SuccessfulDeletePod" : "SuccessfulDeleteService",
            pods ? "Deleted pod: " : "Deleted service: ", deleted);
  return status;
}

absl::Status JobController::CheckLead() const {
  if (env_.leads()) return absl::OkStatus();
  return absl::AbortedError("another operator leads");
}

void JobController::TellChanges(const Pass& pass, const job::JobStatus& before,
                                const job::JobStatus& after) {
  if (before.conditions.empty()) env_.metrics.Count(JobCount::kCreated, pass.name_space());
  for (const job::Condition& condition : after.conditions) {
    const job::Condition* const old = before.FindCondition(condition.type);
    if (old != nullptr && old->is_true == condition.is_true && old->reason == condition.reason) {
      continue;
    }
    if (!condition.is_true && condition.type != "Suspended") continue;
    const bool failed = condition.type == "Failed";
    if (failed) env_.metrics.Count(JobCount::kFailed, pass.name_space());
    if (condition.type == "Succeeded") {
      env_.metrics.Count(JobCount::kSuccessful, pass.name_space());
    }
    Tell(pass.object(), failed, condition.reason, condition.message);
  }
  const int restarts = CountRestarts(after) - CountRestarts(before);
  env_.metrics.Count(JobCount::kRestarted, pass.name_space(),
                     static_cast<uint64_t>(std::max(0, restarts)));
  for (const job::Failure& failure : after.failures) {
    if (std::find(before.failures.begin(), before.failures.end(), failure) !=
        before.failures.end()) {
      continue;
    }
    Tell(pass.object(), true, "ExitedWithCode",
         StrCat(
             "Pod: ", pass.name_space(), ".", GetObjectName(pass.job->spec, failure.task), ": ",
             failure.end.Describe(),
             failure.end.last_line.empty() ? "" : StrCat(", with '", failure.end.last_line, "'")));
  }
}

void JobController::TellNames(const Pass& pass, const char* reason, const char* verb,
                              const std::vector<std::string>& names) {
  if (names.empty()) return;
  const size_t shown = std::min(names.size(), kMaxNames);
  std::string message = StrCat(
      verb, absl::StrJoin(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < names.size()) message += StrCat(" and ", names.size() - shown, " more");
  Tell(pass.object(), false, reason, message);
}

void JobController::Tell(const Json& object, bool is_warning, std::string_view reason,
                         std::string_view message) {
  if (!env_.leads()) return;
  const std::string now = Timestamp(env_.clock.WallSeconds());
  Json event = {{"apiVersion", "v1"}, {"kind", "Event"}};
  event["metadata"] = {
      {"name", StrCat(NameOf(object), ".", absl::Hex(env_.clock.MonotonicNanos()), ".", events_++)},
      {"namespace", NamespaceOf(object)}};
  event["involvedObject"] = {
      {"apiVersion", kTfJobs.group_version},
      {"kind", "TFJob"},
      {"name", NameOf(object)},
      {"namespace", NamespaceOf(object)},
      {"uid", UidOf(object)},
      {"resourceVersion", TextOf(Child(object, "metadata"), "resourceVersion")}};
  event["type"] = is_warning ? "Warning" : "Normal";
  event["reason"] = reason;
  event["message"] = message.substr(0, kMaxMessageBytes);
  event["source"] = {{"component", "muster-operator"}};
  event["firstTimestamp"] = now;
  event["lastTimestamp"] = now;
  event["count"] = 1;
  env_.client.Create(GetTarget(kEvents, NamespaceOf(object)), event).IgnoreError();
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
