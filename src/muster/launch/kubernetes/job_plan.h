// What one pass over a job decides: what was seen of its pods goes to job::Reconcile, and what that
// returns becomes calls of the API server. Pure functions.
//
// A pod's name is a mutex: there is one pod of a name, so a task's new incarnation starts when the
// pod of the old one is gone. A pod is deleted by its uid, never by its name alone.
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
  job::JobStatus status = {};              // to be written before anything else is done
  std::vector<job::TaskId> services = {};  // to be made
  std::vector<TaskStart> pods = {};        // to be made
  std::vector<NamedObject> pod_deletions = {}, service_deletions = {};
  bool delete_job = false;
  std::map<std::string, std::string> problems = {};  // by task: why it does not start
  double wake_after = 0;                             // infinite: nothing is left to do
};

// The tasks that should have a pod of which nothing is known: an operator that has just started may
// not have seen it yet. Each must be asked for by name, and be known or in JobView::gone, before
// PlanJob() is called.
std::vector<TaskStart> FindUnseen(const TrainingJob& job, const job::JobStatus& status,
                                  const JobView& view);

JobPlan PlanJob(const TrainingJob& job, const job::JobStatus& status, const JobView& view,
                const job::Now& now);

// Whether two statuses differ in nothing but the time that has passed.
bool OnlyTimePassed(const job::JobStatus& before, const job::JobStatus& after);

// The `status` of a TFJob object: Kubeflow's fields, and below `muster` the state for the next
// pass, the root cause of a failure and the problems.
Json MakeStatus(const job::JobSpec& spec, const job::JobStatus& status,
                const std::map<std::string, std::string>& problems);
// The state that MakeStatus() has put into the object; that of a new job if there is none.
// INVALID_ARGUMENT if somebody has changed it.
absl::StatusOr<job::JobStatus> ReadState(const Json& object);

}  // namespace muster::launch::kubernetes
