#include "muster/job/job_status.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

#include "muster/job/signals.h"

namespace muster::job {
namespace {

std::string Timestamp(double wall_seconds) {
  const auto whole = static_cast<int64_t>(wall_seconds);
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(whole), absl::UTCTimeZone());
}

Json ReplicaStatuses(const JobSpec& spec, const JobStatus& status) {
  Json json = Json::object();
  for (const auto& [type, replica] : spec.replicas) {
    int active = 0, succeeded = 0, failed = 0;
    for (const auto& [id, task] : status.tasks) {
      if (id.type != type) continue;
      active += task.live() ? 1 : 0;
      succeeded += task.phase == TaskPhase::kSucceeded ? 1 : 0;
      failed += task.phase == TaskPhase::kFailed ? 1 : 0;
    }
    Json& counts = json[std::string(TypeFieldName(type))];
    counts = Json::object();
    if (active > 0) counts["active"] = active;
    if (succeeded > 0) counts["succeeded"] = succeeded;
    if (failed > 0) counts["failed"] = failed;
  }
  return json;
}

}  // namespace

std::string_view PhaseName(TaskPhase phase) {
  switch (phase) {
    case TaskPhase::kWaiting:
      return "waiting";
    case TaskPhase::kStarting:
      return "starting";
    case TaskPhase::kRunning:
      return "running";
    case TaskPhase::kStopping:
      return "stopping";
    case TaskPhase::kSucceeded:
      return "succeeded";
    case TaskPhase::kFailed:
      return "failed";
    case TaskPhase::kStopped:
      return "stopped";
  }
  return "";
}

std::string_view PhaseName(JobPhase phase) {
  switch (phase) {
    case JobPhase::kActive:
      return "active";
    case JobPhase::kSuspended:
      return "suspended";
    case JobPhase::kFinishing:
      return "finishing";
    case JobPhase::kSucceeded:
      return "succeeded";
    case JobPhase::kFailing:
      return "failing";
    case JobPhase::kFailed:
      return "failed";
  }
  return "";
}

std::string TaskEnd::Describe() const {
  std::string how;
  if (signal != 0) {
    how = StrCat("killed by ", SignalName(signal));
  } else if (exit_code >= 0) {
    how = StrCat("exit code ", exit_code);
  } else if (lost && detail.empty()) {
    how = "lost: nothing was heard of it any more";
  }
  if (out_of_memory) how += how.empty() ? "out of memory" : " (out of memory)";
  if (!detail.empty()) how = how.empty() ? detail : StrCat(detail, "; ", how);
  return how.empty() ? "ended" : how;
}

const Condition* JobStatus::FindCondition(std::string_view type) const {
  for (const Condition& condition : conditions) {
    if (condition.type == type) return &condition;
  }
  return nullptr;
}

std::vector<std::string> Shortfalls(const JobStatus& status) {
  std::vector<std::string> phrases;
  for (const auto& [id, task] : status.tasks) {
    if (task.phase == TaskPhase::kFailed && task.last_end) {
      phrases.push_back(StrCat(TaskName(id), " failed (", task.last_end->Describe(), ")"));
    } else if (task.cut_off) {
      phrases.push_back(StrCat(TaskName(id), " was cut off (", task.stop_reason, ")"));
    }
  }
  return phrases;
}

std::string Although(const JobStatus& status) {
  const std::vector<std::string> phrases = Shortfalls(status);
  return phrases.empty() ? "" : StrCat(", although ", absl::StrJoin(phrases, " and "));
}

Json StatusJson(const JobSpec& spec, const JobStatus& status) {
  Json json = Json::object();
  for (const Condition& condition : status.conditions) {
    json["conditions"].push_back({{"type", condition.type},
                                  {"status", condition.is_true ? "True" : "False"},
                                  {"reason", condition.reason},
                                  {"message", condition.message},
                                  {"lastUpdateTime", Timestamp(condition.last_update)},
                                  {"lastTransitionTime", Timestamp(condition.last_transition)}});
  }
  json["replicaStatuses"] = ReplicaStatuses(spec, status);
  if (status.start_time > 0) json["startTime"] = Timestamp(status.start_time);
  if (status.completion_time > 0) json["completionTime"] = Timestamp(status.completion_time);
  return json;
}

}  // namespace muster::job
