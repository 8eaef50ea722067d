#include "muster/launch/kubernetes/job_plan.h"

#include <limits>
#include <set>
#include <utility>

#include "muster/control/status_json.h"
#include "muster/launch/kubernetes/pod_plan.h"

namespace muster::launch::kubernetes {
namespace {

using Phase = job::TaskObservation::Phase;

bool IsGone(const PodRecord& pod) { return pod.phase == Phase::kGone; }

job::Observed Observe(const JobView& view) {
  job::Observed observed;
  for (const auto& [name, pod] : view.pods) {
    job::TaskObservation seen = {.id = pod.task,
                                 .incarnation = pod.incarnation,
                                 .phase = pod.phase,
                                 .end = pod.end,
                                 .restarts_in_place = pod.restarts_in_place};
    // How it ended is known: by the platform, or by its own exit before that.
    if (IsGone(pod)) seen.phase = Phase::kEnded;
    observed.tasks.push_back(std::move(seen));
  }
  for (const auto& [task, incarnation] : view.gone) {
    observed.tasks.push_back({.id = task,
                              .incarnation = incarnation,
                              .phase = Phase::kEnded,
                              .end = {.lost = true, .disrupted = true, .detail = "it has no pod"}});
  }
  return observed;
}

class Planner {
 public:
  Planner(const TrainingJob& job, const JobView& view) : job_(job), view_(view) {}

  JobPlan Plan(job::Reconciled decided) && {
    plan_.status = std::move(decided.status);
    plan_.wake_after = decided.wake_after;
    for (const job::Action& action : decided.actions) Take(action);
    DeleteLeftPods();
    PlanServices();
    FindProblems();
    const bool is_over = plan_.status.ended() && !job_.spec.ttl_seconds && decided.actions.empty();
    if (is_over) plan_.wake_after = std::numeric_limits<double>::infinity();
    return std::move(plan_);
  }

 private:
  void Take(const job::Action& action) {
    if (action.kind == job::Action::Kind::kDeleteJob) {
      plan_.delete_job = true;
      return;
    }
    const auto pod = view_.pods.find(GetObjectName(job_.spec, action.id));
    const bool exists = pod != view_.pods.end() && !IsGone(pod->second);
    if (action.kind == job::Action::Kind::kStart) {
      if (!exists) {
        plan_.pods.push_back({action.id, action.incarnation});
      } else if (pod->second.incarnation != action.incarnation) {
        Delete(pod->first, pod->second, "its task starts again");
      }
    } else if (exists && pod->second.incarnation == action.incarnation) {
      Delete(pod->first, pod->second, action.reason);
    }
  }

  // Once for each pod.
  void Delete(const std::string& name, const PodRecord& pod, const std::string& reason) {
    if (pod.deleting || !deleted_.insert(name).second) return;
    plan_.pod_deletions.push_back({.name = name, .uid = pod.uid, .reason = reason});
  }

  bool IsInSpec(job::TaskId task) const { return task.index < job_.spec.count(task.type); }

  // Pods that have ended: of tasks that the job does not have any more, and, by cleanPodPolicy All,
  // those of a job that has ended.
  void DeleteLeftPods() {
    const bool all =
        plan_.status.ended() && job_.spec.clean_pod_policy == job::CleanPodPolicy::kAll;
    for (const auto& [name, pod] : view_.pods) {
      if (IsGone(pod)) continue;
      const bool is_left = pod.phase == Phase::kEnded && !IsInSpec(pod.task);
      if (all || is_left) Delete(name, pod, all ? "the job has ended" : "scaled down");
    }
  }

  void PlanServices() {
    const bool active = plan_.status.phase == job::JobPhase::kActive && !job_.spec.suspend;
    if (active) {
      for (const auto& [type, replica] : job_.spec.replicas) {
        for (int index = 0; index < replica.replicas; ++index) {
          if (!view_.services.contains(GetObjectName(job_.spec, {type, index}))) {
            plan_.services.push_back({type, index});
          }
        }
      }
    }
    const bool cleans =
        plan_.status.phase == job::JobPhase::kSuspended ||
        (plan_.status.ended() && job_.spec.clean_pod_policy != job::CleanPodPolicy::kNone);
    std::set<std::string> wanted;
    for (const auto& [type, replica] : job_.spec.replicas) {
      for (int index = 0; index < replica.replicas; ++index) {
        wanted.insert(GetObjectName(job_.spec, {type, index}));
      }
    }
    for (const auto& [name, service] : view_.services) {
      const auto pod = view_.pods.find(name);
      const bool has_pod = pod != view_.pods.end() && !IsGone(pod->second);
      if (has_pod || (!cleans && wanted.contains(name))) continue;
      plan_.service_deletions.push_back({.name = name, .uid = service.uid});
    }
  }

  void FindProblems() {
    for (const auto& [name, pod] : view_.pods) {
      if (!pod.problem.empty()) plan_.problems[job::TaskName(pod.task)] = pod.problem;
    }
  }

  const TrainingJob& job_;
  const JobView& view_;
  JobPlan plan_;
  std::set<std::string> deleted_;
};

// The first failure that did not follow from another one.
Json RootCause(const job::JobStatus& status) {
  for (const job::Failure& failure : status.failures) {
    if (failure.follow_up) continue;
    Json cause = {{"task", job::TaskName(failure.task)}, {"how", failure.end.Describe()}};
    if (failure.end.exit_code >= 0) cause["exitCode"] = failure.end.exit_code;
    if (!failure.end.last_line.empty()) cause["lastLine"] = failure.end.last_line;
    return cause;
  }
  return nullptr;
}

}  // namespace

std::vector<TaskStart> FindUnseen(const TrainingJob& job, const job::JobStatus& status,
                                  const JobView& view) {
  std::vector<TaskStart> unseen;
  for (const auto& [id, task] : status.tasks) {
    if (task.phase != job::TaskPhase::kRunning && task.phase != job::TaskPhase::kStopping) continue;
    const auto pod = view.pods.find(GetObjectName(job.spec, id));
    if (pod != view.pods.end() && pod->second.incarnation == task.incarnation) continue;
    unseen.push_back({id, task.incarnation});
  }
  return unseen;
}

JobPlan PlanJob(const TrainingJob& job, const job::JobStatus& status, const JobView& view,
                const job::Now& now) {
  return Planner(job, view).Plan(job::Reconcile(job.spec, status, Observe(view), now));
}

bool OnlyTimePassed(const job::JobStatus& before, const job::JobStatus& after) {
  job::JobStatus same = after;
  same.clock = before.clock;
  same.last_monotonic = before.last_monotonic;
  same.last_wall = before.last_wall;
  if (before.ended()) same.clock_id = before.clock_id;
  return same == before;
}

Json MakeStatus(const job::JobSpec& spec, const job::JobStatus& status,
                const std::map<std::string, std::string>& problems) {
  Json json = job::StatusJson(spec, status);
  for (const auto& [type, replica] : spec.replicas) {
    Json& counts = json["replicaStatuses"][std::string(job::TypeFieldName(type))];
    counts["selector"] = StrCat(kOperatorLabel, "=", kOperatorName, ",", kJobLabel, "=", spec.name,
                                ",", kTypeLabel, "=", job::TypeName(type));
  }
  Json& own = json["muster"];
  own["state"] = control::ToJson(status);
  if (Json cause = RootCause(status); !cause.is_null()) own["rootCause"] = std::move(cause);
  if (!problems.empty()) own["problems"] = problems;
  return json;
}

absl::StatusOr<job::JobStatus> ReadState(const Json& object) {
  const Json& state = Child(Child(Child(object, "status"), "muster"), "state");
  if (state.is_null()) return job::JobStatus();
  return control::StatusFromJson(state, "status.muster.state");
}

}  // namespace muster::launch::kubernetes
