// JobController: one pass over one job, from what is known of it to calls of the API server.
//
// The API server is the journal. The status is written first, with the version of the job that was
// read: ABORTED means that the job has changed or that somebody else has decided, and then nothing
// is done. A call after that can be repeated by any operator at any time: pods and services have
// names of their own, deletions name a uid. So it does not matter after which call an operator
// ends, or whether there are two of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/launch/kubernetes/api/kube_client.h"
#include "muster/launch/kubernetes/job_cache.h"
#include "muster/launch/kubernetes/job_metrics.h"
#include "muster/launch/kubernetes/job_plan.h"
#include "muster/launch/kubernetes/pod_plan.h"

namespace muster::launch::kubernetes {

struct ControllerEnvironment {
  KubeClient& client;
  JobCache& cache;
  const Clock& clock;
  JobMetrics& metrics;
  std::string clock_id = {};  // the scope of the clock's monotonic time
  // Whether this operator leads, asked before each change.
  std::function<bool()> leads = {};
  PodPlanOptions pods = {};
};

class JobController {
 public:
  explicit JobController(ControllerEnvironment environment) : env_(std::move(environment)) {}

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
  struct Pass;

  absl::StatusOr<std::shared_ptr<const TrainingJob>> ReadJob(const std::string& key,
                                                             std::shared_ptr<const Json> object);
  absl::Status RefuseJob(const Json& object, std::string_view why);
  absl::Status SetRuntimeId(const Json& object, const TrainingJob& job);
  absl::Status AskForUnseen(Pass& pass);
  absl::Status WriteStatus(Pass& pass, const JobPlan& plan);
  absl::StatusOr<Json> ReplaceStatus(const Json& object, Json status);
  absl::Status Act(Pass& pass, const JobPlan& plan);
  absl::Status MakeServices(Pass& pass, const JobPlan& plan);
  absl::Status MakePods(Pass& pass, const JobPlan& plan);
  absl::Status DeleteAll(Pass& pass, const KubeKind& kind, const std::vector<NamedObject>& objects);
  absl::Status Adopt(Pass& pass, const KubeKind& kind, const std::string& name);
  absl::Status CheckLead() const;
  void TellChanges(const Pass& pass, const job::JobStatus& before, const job::JobStatus& after);
  void TellNames(const Pass& pass, const char* reason, const char* verb,
                 const std::vector<std::string>& names);
  // An event of the job; an error of the call is ignored.
  void Tell(const Json& object, bool is_warning, std::string_view reason, std::string_view message);
  std::map<std::string, std::string> GetProblems(const std::string& key) const;
  void SetProblem(const std::string& key, const std::string& task, const absl::Status& status);

  const ControllerEnvironment env_;
  mutable Mutex mutex_;
  std::map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_) = {};
  std::atomic<uint64_t> events_ = 0;
};

}  // namespace muster::launch::kubernetes
