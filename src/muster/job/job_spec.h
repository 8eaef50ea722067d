// JobSpec: a cluster of tasks as data. Its terms are those of TFJob v1 (kubeflow.org/v1, Kubeflow
// training-operator 1.9); settings that TFJob lacks are in annotations `muster/...` (docs/job.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/json_fields.h"

namespace muster::job {

using formats::Json;

// In the order in which TFJob evaluates results.
enum class TaskType { kChief, kEvaluator, kMaster, kPs, kWorker };
constexpr TaskType kTaskTypes[] = {TaskType::kChief, TaskType::kEvaluator, TaskType::kMaster,
                                   TaskType::kPs, TaskType::kWorker};
std::string_view TypeName(TaskType type);       // "chief": in TF_CONFIG and messages
std::string_view TypeFieldName(TaskType type);  // "Chief": in manifests
// Either form, any case.
std::optional<TaskType> ParseTaskType(std::string_view name);

// One place in the cluster.
struct TaskId {
  TaskType type = TaskType::kWorker;
  int index = 0;
  friend bool operator==(const TaskId&, const TaskId&) = default;
  friend bool operator<(const TaskId& a, const TaskId& b) {
    return a.type != b.type ? a.type < b.type : a.index < b.index;
  }
};
std::string TaskName(TaskId id);  // "worker-1"
// "worker-1", or "chief" for "chief-0"; none for text that is not a task's name.
std::optional<TaskId> ParseTaskName(std::string_view name);

// When a task that ended is restarted. kExitCode: after exit codes >= 128 and when killed by a
// signal; any other failure fails the job.
enum class RestartPolicy { kAlways, kOnFailure, kNever, kExitCode };
std::string_view RestartPolicyName(RestartPolicy policy);

// Which tasks are ended when the job has finished.
enum class CleanPodPolicy { kAll, kRunning, kNone };
std::string_view CleanPodPolicyName(CleanPodPolicy policy);

struct ReplicaSpec {
  int replicas = 1;
  RestartPolicy restart_policy = RestartPolicy::kNever;
  Json pod_template = Json::object();  // of Kubernetes, as given (see pod_template.h)
  friend bool operator==(const ReplicaSpec&, const ReplicaSpec&) = default;
};

// What to do about a failure: the first matching rule decides, before the restart policy.
struct FailureRule {
  enum class Action { kRestartTask, kRestartGang, kFailJob, kIgnore };
  std::optional<TaskType> type;  // none: every one
  std::vector<int> exit_codes;   // these and the signals empty: every failure
  std::vector<int> signals;
  Action action = Action::kRestartTask;
  friend bool operator==(const FailureRule&, const FailureRule&) = default;
};
std::string_view FailureActionName(FailureRule::Action action);

// How often a failed task may be restarted, and how long after its end: at once, or after a backoff
// if there was another restart in the window. Restarts after disruptions have the same backoff, by
// their own number, and no limit.
struct RestartBudget {
  int per_task = 3;
  int per_job = 100;  // a gang's restart counts as one
  double window_seconds = 3600;
  double backoff_seconds = 1;  // before the 2nd restart in the window; doubles with each one
  double max_backoff_seconds = 300;
  friend bool operator==(const RestartBudget&, const RestartBudget&) = default;
};

// kGang: when a task fails, all are restarted.
enum class RestartScope { kTask, kGang };

struct JobSpec {
  std::string name;                // a DNS-1035 label
  std::string name_space;          // "" for Kubernetes' default
  Json metadata = Json::object();  // labels and annotations of others, as given
  std::map<TaskType, ReplicaSpec> replicas;

  bool all_workers = false;      // successPolicy AllWorkers; without a leader
  bool dynamic_workers = false;  // enableDynamicWorker
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::kNone;
  std::optional<int64_t> ttl_seconds, active_deadline_seconds;
  std::optional<int> backoff_limit;
  bool suspend = false;
  std::string managed_by;
  Json scheduling_policy;  // of Kubernetes, as given

  std::vector<FailureRule> failure_policy;
  RestartBudget restart_budget;
  RestartScope restart_scope = RestartScope::kTask;
  std::optional<double> progress_timeout_seconds;  // no sign of life: counts as failed
  std::optional<double> finish_timeout_seconds;    // for the others, after success
  std::optional<int> min_workers, max_workers;
  bool needs_evaluator = false;  // the job succeeds only once its evaluator has done its work
  bool fail_fast = false;        // the same end twice in a row, before any progress, fails the job
  std::string model_dir;         // changes in it are signs of life; "": none is known
  std::vector<std::string> files, archives;  // staged into each task's working directory
  bool legacy_labels = false;                // v1alpha1: tasks are labelled runtime_id and job_type

  int count(TaskType type) const;
  int total() const;
  // The task type whose end is the job's end: chief, else master; none: worker 0 or all workers
  // decide.
  std::optional<TaskType> leader() const;
  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// Checks a spec by itself: INVALID_ARGUMENT for the first problem found. `where`: the beginning of
// the message (the file).
absl::Status Validate(const JobSpec& spec, std::string_view where);

// "90s", "5m", "1h30m", "250ms" as Go prints durations; a bare number is seconds.
absl::StatusOr<double> ParseDuration(std::string_view text);
std::string PrintDuration(double seconds);

}  // namespace muster::job
