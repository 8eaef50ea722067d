#include "muster/launch/kubernetes/job_plan.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "muster/control/status_json.h"
#include "muster/launch/kubernetes/pod_plan.h"

namespace muster::launch::kubernetes {
namespace {

using Phase = job::TaskObservation::Phase;

constexpr double kClockSeconds = 60;  // a status with another clock's times is written after it
constexpr double kShortestWake = 1;   // seconds
constexpr size_t kMostProblems = 500;
constexpr char kMoreProblems[] = "all";  // before the names of tasks

// The uid of the pod that the incarnation has, if the status names one.
const std::string* FindAdmitted(const AdmittedPods& admitted, job::TaskId task) {
  const auto found = admitted.find(task);
  return found == admitted.end() ? nullptr : &found->second;
}

// Whether a pod has the name and incarnation of a task, but is another one than the pod that the
// status names: a late call made it.
bool IsStray(const PodRecord& pod, const job::JobStatus& status, const AdmittedPods& admitted) {
  const auto task = status.tasks.find(pod.task);
  if (task == status.tasks.end() || task->second.incarnation != pod.incarnation) return false;
  return !IsPodOf(pod, pod.task, pod.incarnation, admitted);
}

job::Observed Observe(const JobView& view, const job::JobStatus& status) {
  job::Observed observed;
  for (const auto& [name, pod] : view.pods) {
    if (IsStray(pod, status, view.admitted)) continue;
    job::TaskObservation seen = {.id = pod.task,
                                 .incarnation = pod.incarnation,
                                 .phase = pod.phase,
                                 .end = pod.end,
                                 .restarts_in_place = pod.restarts_in_place,
                                 .end_in_place = pod.end_in_place,
                                 .idle_seconds = pod.idle_seconds};
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

  JobPlan Plan(const job::JobStatus& before, job::Reconciled decided) && {
    plan_.status = std::move(decided.status);
    plan_.wake_after = decided.wake_after;
    Admit(before);
    for (const job::Action& action : decided.actions) Take(action);
    DeleteLeftPods();
    PlanServices();
    FindProblems();
    WaitForEarlierJob();
    ExpireJob();
    const bool is_over = plan_.status.ended() && !job_.spec.ttl_seconds && decided.actions.empty();
    if (is_over) plan_.wake_after = std::numeric_limits<double>::infinity();
    return std::move(plan_);
  }

 private:
  // Keeps the pods of the incarnations that are still the same, and adds those that are seen for
  // the first time.
  void Admit(const job::JobStatus& before) {
    for (const auto& [task, uid] : view_.admitted) {
      const auto old = before.tasks.find(task);
      const auto now = plan_.status.tasks.find(task);
      const bool is_same = old != before.tasks.end() && now != plan_.status.tasks.end() &&
                           old->second.incarnation == now->second.incarnation;
      if (is_same) plan_.admitted[task] = uid;
    }
    for (const auto& [name, pod] : view_.pods) {
      if (IsGone(pod) || pod.deleting) continue;
      const auto task = plan_.status.tasks.find(pod.task);
      if (task == plan_.status.tasks.end() || task->second.incarnation != pod.incarnation) continue;
      const bool may_start = task->second.live() && task->second.phase != job::TaskPhase::kStopping;
      if (pod.gated && !may_start) continue;
      const auto [admitted, is_new] = plan_.admitted.try_emplace(pod.task, pod.uid);
      if (pod.gated && admitted->second == pod.uid) {
        plan_.admissions.push_back({.name = name, .uid = pod.uid});
      }
    }
  }

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

  // What cleanPodPolicy None leaves to run does not keep the job from being deleted in time.
  void ExpireJob() {
    if (!plan_.status.ended() || !job_.spec.ttl_seconds) return;
    const double left =
        plan_.status.ended_at + static_cast<double>(*job_.spec.ttl_seconds) - plan_.status.clock;
    if (left <= 0) plan_.delete_job = true;
    plan_.wake_after = std::min(plan_.wake_after, std::max(left, kShortestWake));
  }

  bool IsInSpec(job::TaskId task) const { return task.index < job_.spec.count(task.type); }

  // Pods that have ended: of tasks that the job does not have any more, and, by cleanPodPolicy All,
  // those of a job that has ended. Pods that never ran and never will: those that the status does
  // not name, or that wait for a task that has ended without them.
  void DeleteLeftPods() {
    const bool all =
        plan_.status.ended() && job_.spec.clean_pod_policy == job::CleanPodPolicy::kAll;
    for (const auto& [name, pod] : view_.pods) {
      if (IsGone(pod)) continue;
      const bool is_left = pod.phase == Phase::kEnded && !IsInSpec(pod.task);
      if (all || is_left) Delete(name, pod, all ? "the job has ended" : "scaled down");
      const auto task = plan_.status.tasks.find(pod.task);
      // The gate of a pod that the status names may be gone: the watch of pods may be behind that
      // of jobs.
      const std::string* const named = FindAdmitted(plan_.admitted, pod.task);
      const bool waits_in_vain = pod.gated && (named == nullptr || *named != pod.uid) &&
                                 (task == plan_.status.tasks.end() || !task->second.live());
      if (waits_in_vain || IsStray(pod, plan_.status, plan_.admitted)) {
        Delete(name, pod, "a late call made it");
      }
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
    // Then a service goes with its pod.
    const bool cleans = plan_.status.phase == job::JobPhase::kSuspended || plan_.status.ended();
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

  // Its pods have the names, and perhaps the connections, that those of this job are to have.
  void WaitForEarlierJob() {
    if (view_.earlier.empty() || (plan_.pods.empty() && plan_.services.empty())) return;
    const size_t others = view_.earlier.size() - 1;
    const std::string problem =
        StrCat("EarlierJob: waits until the pod ", view_.earlier.front(),
               others == 0 ? "" : StrCat(" and ", others, " more"),
               " of an earlier job of this name ", others == 0 ? "has" : "have", " ended");
    for (const TaskStart& start : plan_.pods) plan_.problems[job::TaskName(start.task)] = problem;
    plan_.pods.clear();
    plan_.services.clear();
  }

  const TrainingJob& job_;
  const JobView& view_;
  JobPlan plan_;
  std::set<std::string> deleted_;
};

// As in Kubeflow, what is Pending is not active, and what runs when the job succeeds has succeeded.
Json CountReplicas(const job::JobStatus& status, job::TaskType type) {
  const job::Condition* const condition = status.FindCondition("Succeeded");
  const bool is_over = condition != nullptr && condition->is_true;
  int active = 0, succeeded = 0, failed = 0;
  for (const auto& [id, task] : status.tasks) {
    if (id.type != type) continue;
    const bool runs =
        task.phase == job::TaskPhase::kRunning || task.phase == job::TaskPhase::kStopping;
    const bool ran = runs || task.phase == job::TaskPhase::kStopped;
    active += runs && !is_over ? 1 : 0;
    succeeded += task.phase == job::TaskPhase::kSucceeded || (ran && is_over) ? 1 : 0;
    failed += task.phase == job::TaskPhase::kFailed ? 1 : 0;
  }
  Json counts = Json::object();
  if (active > 0) counts["active"] = active;
  if (succeeded > 0) counts["succeeded"] = succeeded;
  if (failed > 0) counts["failed"] = failed;
  return counts;
}

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
    if (!task.live()) continue;
    const bool may_have_run =
        task.phase != job::TaskPhase::kStarting || FindAdmitted(view.admitted, id) != nullptr;
    const auto pod = view.pods.find(GetObjectName(job.spec, id));
    const bool is_seen =
        pod != view.pods.end() && IsPodOf(pod->second, id, task.incarnation, view.admitted);
    if (may_have_run && !is_seen) unseen.push_back({id, task.incarnation});
  }
  return unseen;
}

bool IsPodOf(const PodRecord& pod, job::TaskId task, int64_t incarnation,
             const AdmittedPods& admitted) {
  if (pod.incarnation != incarnation) return false;
  const std::string* const uid = FindAdmitted(admitted, task);
  return uid == nullptr || *uid == pod.uid;
}

bool MayHavePod(const std::string& name, const job::JobSpec& spec, const job::JobStatus& status,
                const JobView& view) {
  const auto pod = view.pods.find(name);
  if (pod == view.pods.end()) return true;
  if (!IsGone(pod->second)) return false;
  return std::any_of(status.tasks.begin(), status.tasks.end(), [&](const auto& entry) {
    return GetObjectName(spec, entry.first) == name &&
           entry.second.incarnation != pod->second.incarnation;
  });
}

bool IsOlderThanItsPods(const job::JobStatus& status, const JobView& view) {
  return std::any_of(view.pods.begin(), view.pods.end(), [&](const auto& entry) {
    return entry.second.incarnation >= status.next_incarnation && !IsGone(entry.second);
  });
}

std::string GetLease(const Json& job) {
  return GetText(Child(Child(job, "status"), "muster"), kLeaseField);
}

JobPlan PlanJob(const TrainingJob& job, const job::JobStatus& status, const JobView& view,
                const job::Now& now) {
  job::Observed observed = Observe(view, status);
  observed.cancelled = job.stop;
  return Planner(job, view).Plan(status, job::Reconcile(job.spec, status, observed, now));
}

bool OnlyTimePassed(const job::JobStatus& before, const job::JobStatus& after) {
  job::JobStatus same = after;
  same.clock = before.clock;
  same.last_monotonic = before.last_monotonic;
  same.last_wall = before.last_wall;
  // Another operator's clock begins to count soon, not at each turn of two operators.
  const bool is_soon = after.last_wall - before.last_wall < kClockSeconds;
  if (before.ended() || is_soon) same.clock_id = before.clock_id;
  return same == before;
}

Json MakeStatus(const job::JobSpec& spec, const job::JobStatus& status,
                const std::map<std::string, std::string>& problems, const AdmittedPods& admitted) {
  Json json = job::StatusJson(spec, status);
  for (const auto& [type, replica] : spec.replicas) {
    Json& counts = json["replicaStatuses"][std::string(job::TypeFieldName(type))];
    counts = CountReplicas(status, type);
    counts["selector"] = StrCat(kOperatorLabel, "=", kOperatorName, ",", kJobLabel, "=", spec.name,
                                ",", kTypeLabel, "=", job::TypeName(type));
  }
  Json& own = json["muster"];
  own["state"] = control::ToJson(status);
  if (Json cause = RootCause(status); !cause.is_null()) own["rootCause"] = std::move(cause);
  if (!problems.empty()) own["problems"] = problems;
  if (!admitted.empty()) own["pods"] = AdmittedToJson(admitted);
  return json;
}

void LimitProblems(std::map<std::string, std::string>* problems) {
  if (problems->size() <= kMostProblems) return;
  const size_t left_out = problems->size() - kMostProblems;
  problems->erase(std::next(problems->begin(), kMostProblems), problems->end());
  (*problems)[kMoreProblems] = StrCat(left_out, " more tasks have problems");
}

ForeignStatus GetForeignStatus(const Json& object) {
  const Json& status = Child(object, "status");
  const Json& conditions = Child(status, "conditions");
  const bool is_ours = Child(status, "muster").is_object();
  if (is_ours || !conditions.is_array() || conditions.empty()) return ForeignStatus::kNone;
  const bool ended = std::any_of(conditions.begin(), conditions.end(), [](const Json& each) {
    const std::string type = GetText(each, "type");
    return GetText(each, "status") == "True" && (type == "Succeeded" || type == "Failed");
  });
  return ended ? ForeignStatus::kEnded : ForeignStatus::kActive;
}

absl::StatusOr<job::JobStatus> ReadState(const Json& object) {
  const Json& state = Child(Child(Child(object, "status"), "muster"), "state");
  if (state.is_null()) return job::JobStatus();
  auto status = control::StatusFromJson(state, "status.muster.state");
  if (status.ok()) return status;
  return absl::Status(
      status.status().code(),
      StrCat(
          ToStd(status.status().message()),
          "; somebody has changed it. To let the job continue from its pods: kubectl patch tfjob ",
          GetName(object), " --namespace ", GetNamespace(object),
          " --subresource status --type merge --patch '{\"status\": null}'"));
}

}  // namespace muster::launch::kubernetes
