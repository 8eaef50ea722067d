// What the JobController does about a job whose settings cannot be read, or not be followed.
#include <algorithm>
#include <utility>

#include "muster/launch/kubernetes/job_controller.h"
#include "muster/launch/kubernetes/native_pod.h"

namespace muster::launch::kubernetes {
namespace {

constexpr size_t kMaxKeptBytes = size_t{512} << 10;  // of settings in a status of 1.5 MiB at most

Json GetSettings(const Json& object) {
  return {{"annotations", Child(Child(object, "metadata"), "annotations")},
          {"spec", Child(object, "spec")}};
}

// `object` with other settings.
Json WithSettings(Json object, const Json& settings) {
  object["metadata"]["annotations"] = Child(settings, "annotations");
  object["spec"] = Child(settings, "spec");
  return object;
}

// As the settings say, whatever else in them cannot be read.
job::CleanPodPolicy GetCleanPodPolicy(const Json& object) {
  using job::CleanPodPolicy;
  const std::string name = GetText(Child(Child(object, "spec"), "runPolicy"), "cleanPodPolicy");
  for (const CleanPodPolicy policy : {CleanPodPolicy::kAll, CleanPodPolicy::kRunning}) {
    if (name == job::CleanPodPolicyName(policy)) return policy;
  }
  return CleanPodPolicy::kNone;
}

// Of a job of which nothing but its tasks is known: enough to end them.
TrainingJob MakeUnknownJob(const Json& object, const job::JobStatus& status) {
  TrainingJob job;
  job.spec.clean_pod_policy = GetCleanPodPolicy(object);
  job.uid = GetUid(object);
  job.spec.name = GetName(object);
  job.spec.name_space = GetNamespace(object);
  for (const auto& [id, task] : status.tasks) {
    int& replicas = job.spec.replicas.try_emplace(id.type).first->second.replicas;
    replicas = std::max(replicas, id.index + 1);
  }
  return job;
}

}  // namespace

absl::Status JobController::ReadSettings(Pass& pass) {
  const Json& most = Child(Child(Child(pass.object(), "status"), "muster"), kMostWorkers);
  if (most.is_number_integer()) pass.most_workers = most.get<int>();
  const auto read = ReadJob(pass.key, pass.view.object);
  if (!read.ok() && pass.status.tasks.empty()) return read.status();
  pass.job = read.ok() ? *read : FindLastJob(pass);
  if (pass.job == nullptr) return read.status();
  if (pass.status.ended()) return absl::OkStatus();
  if (!pass.most_workers) pass.most_workers = GetMostWorkers(*pass.job);
  if (auto kept = KeepTaskNumbers(*pass.job, pass.status, pass.most_workers, &pass.invalid)) {
    pass.job = std::make_shared<const TrainingJob>(*std::move(kept));
  }
  if (read.ok()) return absl::OkStatus();
  pass.invalid =
      StrCat(ToStd(read.status().message()),
             "; the job goes on as it was before this edit: correct it, or stop the job");
  return absl::OkStatus();
}

// Null: nobody knows the job's last settings, and it was not told to end or to be suspended.
std::shared_ptr<const TrainingJob> JobController::FindLastJob(Pass& pass) {
  {
    const MutexLock lock(&mutex_);
    const auto known = known_.find(pass.key);
    const auto object = known == known_.end() ? nullptr : known->second.object;
    if (object != nullptr && GetUid(*object) == GetUid(pass.object())) {
      pass.last_settings = GetSettings(*object);
    }
  }
  // Another operator has kept them.
  if (pass.last_settings.is_null()) {
    pass.last_settings = Child(Child(Child(pass.object(), "status"), "muster"), "lastSettings");
  }
  absl::StatusOr<TrainingJob> last = absl::NotFoundError("");
  if (pass.last_settings.is_object()) {
    last = ReadTrainingJob(WithSettings(pass.object(), pass.last_settings));
  }
  const bool is_known = last.ok();
  TrainingJob job = is_known ? *std::move(last) : MakeUnknownJob(pass.object(), pass.status);
  ReadOrders(pass.object(), &job);
  if (!is_known && job.stop.empty() && !job.spec.suspend) return nullptr;
  if (formats::PrintJson(pass.last_settings).size() > kMaxKeptBytes) pass.last_settings = Json();
  return std::make_shared<const TrainingJob>(std::move(job));
}

// A job that cannot be read fails. One that has begun stays as it is.
absl::Status JobController::RefuseJob(Pass& pass, std::string_view why) {
  const Json& object = pass.object();
  if (pass.status.ended()) return absl::OkStatus();
  if (!pass.status.tasks.empty()) {
    pass.invalid = StrCat(why,
                          "; nothing more is done about the job until this is corrected, or the "
                          "job is stopped");
    const Json before = Child(object, "status");
    Json status = before;
    status["muster"]["problems"][kSettingsProblem] = pass.invalid;
    if (status == before) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(Json written, ReplaceStatus(object, std::move(status)));
    env_.cache.SetJob(std::move(written), JobCache::Source::kAnswer);
    TellInvalid(pass, Child(Child(before, "muster"), "problems"));
    return absl::OkStatus();
  }
  events_.TellLasting(object, "FailedValidation", why);
  const double now = env_.clock.WallSeconds();
  job::JobStatus status = pass.status;
  status.phase = job::JobPhase::kFailed;
  status.failure_message = why;
  status.start_time = status.completion_time = now;
  status.conditions = {{"Failed", true, "TFJobFailed", std::string(why), now, now}};
  MUSTER_ASSIGN_OR_RETURN(Json written, ReplaceStatus(object, MakeStatus({}, status, {})));
  env_.metrics.Count(JobCount::kFailed, GetNamespace(object));
  env_.cache.SetJob(std::move(written), JobCache::Source::kAnswer);
  return absl::OkStatus();
}

void JobController::TellInvalid(const Pass& pass, const Json& known_problems) {
  if (pass.invalid.empty() || GetText(known_problems, kSettingsProblem) == pass.invalid) return;
  events_.TellLasting(pass.object(), "FailedValidation", pass.invalid);
}

}  // namespace muster::launch::kubernetes
