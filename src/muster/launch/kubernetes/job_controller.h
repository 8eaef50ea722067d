// JobController: one pass over one job, from what is known of it to calls of the API server.
//
// The API server is the journal. The status is written first, with the version of the job that was
// read: ABORTED means that the job has changed or that somebody else has decided, and then nothing
// is done. A call after that can be repeated by any operator at any time: pods and services have
// names of their own, deletions name a uid, and a pod that comes late never runs (admission.h). So
// it does not matter after which call an operator ends or is stopped for a time, or whether there
// are two of them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/launch/kubernetes/api/call_crew.h"
#include "muster/launch/kubernetes/api/kube_calls.h"
#include "muster/launch/kubernetes/job_cache.h"
#include "muster/launch/kubernetes/job_events.h"
#include "muster/launch/kubernetes/job_metrics.h"
#include "muster/launch/kubernetes/job_plan.h"
#include "muster/launch/kubernetes/other_operators.h"
#include "muster/launch/kubernetes/pod_groups.h"
#include "muster/launch/kubernetes/pod_looks.h"
#include "muster/launch/kubernetes/pod_plan.h"

namespace muster::launch::kubernetes {

struct ControllerEnvironment {
  KubeCalls& client;
  JobCache& cache;
  const Clock& clock;
  JobMetrics& metrics;
  std::string clock_id = {};  // the scope of the clock's monotonic time
  // Whether this operator leads, asked before each change.
  std::function<bool()> leads = {};
  PodPlanOptions pods = {};
  PodLooks* looks = nullptr;    // null: pods are only watched
  PodGroups* groups = nullptr;  // null: no gang scheduling
  int calls_at_once = 1;        // threads that make pods and services, those of Run() included
  std::string lease = {};       // "NAMESPACE/NAME" of the operators' Lease; "": none
  // Null: there is no operator of another Lease.
  OtherOperators* others = nullptr;
  // Whether jobs of this namespace are this operator's. Unset: all are.
  std::function<bool(const std::string& name_space)> owns = {};
};

inline constexpr char kMostWorkers[] = "mostWorkers";  // in status.muster

class JobController {
 public:
  explicit JobController(ControllerEnvironment environment)
      : env_(std::move(environment)),
        events_(env_.client, env_.clock, env_.metrics, env_.leads),
        crew_(env_.calls_at_once) {}

  // Seconds until the job must be looked at again, infinite if only a change can give something to
  // do. An error means that the pass must be repeated after a pause. One thread for each key; any
  // for different keys.
  absl::StatusOr<double> Run(const std::string& key);

 private:
  struct Known {  // of the last pass over a job
    std::shared_ptr<const Json> object = {};
    std::shared_ptr<const TrainingJob> job = {};
    std::map<std::string, std::string> problems = {};  // of calls, by task
  };
  // A pass over one job.
  struct Pass {
    const std::string& key;
    JobView view = {};
    std::shared_ptr<const TrainingJob> job = {};
    job::JobStatus status = {};
    std::string invalid = {};  // what is wrong with the job's present settings, for people
    std::optional<int> most_workers = {};  // GetMostWorkers() when the job began
    Json last_settings = {};  // those that count in their place: "annotations" and "spec"

    const Json& object() const { return *view.object; }
    const std::string& name_space() const { return job->spec.name_space; }
  };

  absl::StatusOr<std::shared_ptr<const TrainingJob>> ReadJob(const std::string& key,
                                                             std::shared_ptr<const Json> object);
  // job_edits.cc. Sets pass.job to what counts: where somebody has edited a job that has begun so
  // that it cannot be read, the last settings that could be, with the orders to stop or suspend it.
  absl::Status ReadSettings(Pass& pass);
  std::shared_ptr<const TrainingJob> FindLastJob(Pass& pass);
  absl::Status RefuseJob(Pass& pass, std::string_view why);
  void TellInvalid(const Pass& pass, const Json& known_problems);
  absl::Status SetRuntimeId(const Json& object, const TrainingJob& job);
  // job_definition.cc.
  absl::Status LookForState(Pass& pass);
  absl::Status TellDropped(const Json& object);
  void TellLost(const Json& object);
  absl::Status CheckNewest(const Pass& pass);
  absl::Status AskForUnseen(Pass& pass);
  absl::Status WriteStatus(Pass& pass, const JobPlan& plan);
  absl::StatusOr<Json> ReplaceStatus(const Json& object, Json status);
  absl::Status Act(Pass& pass, const JobPlan& plan);
  // job_groups.cc. Whether pods and services may be made.
  absl::StatusOr<bool> SyncGroup(const Pass& pass, const JobPlan& plan);
  absl::Status MakeServices(Pass& pass, const JobPlan& plan);
  // job_secret.cc. Whether pods may be admitted and made.
  absl::StatusOr<bool> SyncSecret(Pass& pass, const JobPlan& plan);
  // Adds to the ends of pods that were deleted for a lost Secret why that was.
  void ExplainDeletions(Pass& pass) const;
  absl::Status AdmitPods(Pass& pass, const JobPlan& plan);
  absl::Status MakePods(Pass& pass, const JobPlan& plan);
  absl::Status DeleteAll(Pass& pass, const KubeKind& kind, const std::vector<NamedObject>& objects);
  absl::Status DeleteServices(Pass& pass, const JobPlan& plan);
  absl::Status Adopt(Pass& pass, const KubeKind& kind, const std::string& name);
  absl::Status CheckLead() const;
  std::map<std::string, std::string> GetProblems(const std::string& key) const;
  void SetProblem(const std::string& key, const std::string& task, const absl::Status& status);

  const ControllerEnvironment env_;
  JobEvents events_;
  CallCrew crew_;
  mutable Mutex mutex_;
  std::map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace muster::launch::kubernetes
