// PodLooks: what the operator asks about pods from time to time, since no watch brings it: whether
// a running task still writes (muster/progressTimeout), and which events say why a pod that has a
// node does not start, such as a volume that cannot be mounted.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/launch/kubernetes/api/kube_client.h"
#include "muster/launch/kubernetes/job_cache.h"
#include "muster/launch/kubernetes/training_job.h"

namespace muster::launch::kubernetes {

// What PodLooks asks of the API server.
struct PodQuestions {
  // Whether the pod's container has written anything in the last so many seconds.
  std::function<absl::StatusOr<bool>(const std::string& name_space, const std::string& pod,
                                     const std::string& container, int seconds)>
      has_written = {};
  // The newest warning about the pod, "FailedMount: ..."; "": there is none.
  std::function<absl::StatusOr<std::string>(const std::string& name_space, const std::string& uid)>
      find_warning = {};
};

// Those of an operator, which may read the logs of pods and list events.
PodQuestions MakePodQuestions(KubeClient& client);

// Any thread; one for each key.
class PodLooks {
 public:
  PodLooks(PodQuestions questions, const Clock& clock)
      : questions_(std::move(questions)), clock_(clock) {}

  // Looks at the pods of a job whose time has come, and sets idle_seconds and problem of the view's
  // pods by what is known. Returns the seconds until the next look; infinite: there is none.
  //
  // What cannot be asked counts as a sign of life. A new operator begins to count anew. Parameter
  // servers wait for others and are not asked.
  double Look(const std::string& key, const TrainingJob& job, JobView* view);
  void Forget(const std::string& key);

 private:
  struct Seen {            // of one pod
    double since = 0;      // when it was first seen in this phase
    double looked_at = 0;  // the last look, or `since`
    double alive_at = 0;
    int restarts = 0;
    job::TaskObservation::Phase phase = job::TaskObservation::Phase::kStarting;
    std::string warning = {};
  };
  using SeenPods = std::map<std::string, Seen>;  // by uid

  double Now() const { return static_cast<double>(clock_.MonotonicNanos()) * 1e-9; }
  double LookForLife(const TrainingJob& job, const std::string& name, job::TaskType type,
                     Seen* seen) const;
  double LookForWarning(const TrainingJob& job, const std::string& uid, Seen* seen) const;

  const PodQuestions questions_;
  const Clock& clock_;
  Mutex mutex_;
  std::map<std::string, SeenPods> jobs_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace muster::launch::kubernetes
