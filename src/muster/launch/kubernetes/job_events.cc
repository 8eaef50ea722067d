#include "muster/launch/kubernetes/job_events.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/time/time.h"

#include "muster/launch/kubernetes/pod_plan.h"

namespace muster::launch::kubernetes {
namespace {

constexpr size_t kMaxMessageBytes = 1000;  // of an event; the server refuses 1,024 and more
constexpr double kLastingSeconds = 600;    // between two events about the same
constexpr size_t kMaxNames = 20;           // in an event's message

std::string Timestamp(double wall_seconds) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ",
                          absl::FromUnixSeconds(static_cast<int64_t>(wall_seconds)),
                          absl::UTCTimeZone());
}

// In Kubeflow's words where the code is all that there is to say.
std::string DescribeEnd(const job::TaskEnd& end) {
  if (end.exit_code < 0 || end.signal != 0 || !end.detail.empty() || end.out_of_memory) {
    return StrCat(": ", end.Describe());
  }
  return StrCat(" exited with code ", end.exit_code);
}

int CountRestarts(const job::JobStatus& status) {
  int sum = 0;
  for (const auto& [id, task] : status.tasks)
    sum += task.restarts + task.restarts_in_place + task.disruptions;
  return sum;
}

}  // namespace

void JobEvents::TellChanges(const Json& object, const job::JobSpec& spec,
                            const job::JobStatus& before, const job::JobStatus& after) {
  if (before.conditions.empty()) metrics_.Count(JobCount::kCreated, GetNamespace(object));
  for (const job::Condition& condition : after.conditions) {
    const job::Condition* const old = before.FindCondition(condition.type);
    if (old != nullptr && old->is_true == condition.is_true && old->reason == condition.reason) {
      continue;
    }
    if (!condition.is_true && condition.type != "Suspended") continue;
    const bool failed = condition.type == "Failed";
    if (failed) metrics_.Count(JobCount::kFailed, GetNamespace(object));
    if (condition.type == "Succeeded") {
      metrics_.Count(JobCount::kSuccessful, GetNamespace(object));
    }
    Tell(object, failed || condition.type == "Restarting", condition.reason, condition.message);
  }
  const int restarts = CountRestarts(after) - CountRestarts(before);
  metrics_.Count(JobCount::kRestarted, GetNamespace(object),
                 static_cast<uint64_t>(std::max(0, restarts)));
  for (const job::Failure& failure : after.failures) {
    if (std::find(before.failures.begin(), before.failures.end(), failure) !=
        before.failures.end()) {
      continue;
    }
    Tell(object, true, "ExitedWithCode",
         StrCat(
             "Pod: ", GetNamespace(object), ".", GetObjectName(spec, failure.task),
             DescribeEnd(failure.end),
             failure.end.last_line.empty() ? "" : StrCat(", with '", failure.end.last_line, "'")));
  }
}

void JobEvents::TellProblems(const Json& object, const std::map<std::string, PodRecord>& pods,
                             const std::map<std::string, std::string>& problems,
                             const Json& known) {
  for (const auto& [name, pod] : pods) {
    const std::string task = job::TaskName(pod.task);
    const auto problem = problems.find(task);
    if (pod.problem.empty() || problem == problems.end()) continue;
    if (GetText(known, task) == problem->second) continue;
    const size_t colon = pod.problem.find(": ");
    if (colon == pod.problem.npos) continue;
    const std::string reason = pod.problem.substr(0, colon);
    if (reason.starts_with("Failed")) {  // an event of the pod
      Tell(object, true, reason, StrCat("Error pod ", name, pod.problem.substr(colon)));
      continue;
    }
    const bool is_scheduling = reason == "Unschedulable" || reason == "SchedulingGated";
    Tell(object, true, reason,
         StrCat("Error pod ", name,
                is_scheduling ? " condition message"
                              : StrCat(" container ", kContainerName, " waiting message"),
                pod.problem.substr(colon)));
  }
}

void JobEvents::TellNames(const Json& object, const char* reason, const char* verb,
                          std::vector<std::string> names) {
  std::erase(names, "");  // of what was not made
  if (names.empty()) return;
  const size_t shown = std::min(names.size(), kMaxNames);
  std::string message = StrCat(
      verb, absl::StrJoin(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < names.size()) message += StrCat(" and ", names.size() - shown, " more");
  Tell(object, false, reason, message);
}

void JobEvents::TellWarnings(const Json& object, job::TaskType type,
                             const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    const bool is_unknown = warning.starts_with("unknown field");
    TellLasting(object, is_unknown ? "UnknownField" : "PodWarning",
                StrCat("spec.tfReplicaSpecs.", job::TypeFieldName(type), ".template: ", warning,
                       is_unknown ? " has no effect: is it misspelt?" : ""));
  }
}

void JobEvents::TellLasting(const Json& object, std::string_view reason, std::string_view message) {
  const double now = static_cast<double>(clock_.MonotonicNanos()) * 1e-9;
  {
    const MutexLock lock(&mutex_);
    std::erase_if(lasting_,
                  [now](const auto& each) { return now - each.second > kLastingSeconds; });
    if (!lasting_.try_emplace(StrCat(GetUid(object), " ", reason, " ", message), now).second)
      return;
  }
  Tell(object, true, reason, message);
}

void JobEvents::Tell(const Json& object, bool is_warning, std::string_view reason,
                     std::string_view message) {
  if (!leads_()) return;
  const std::string now = Timestamp(clock_.WallSeconds());
  Json event = {{"apiVersion", "v1"}, {"kind", "Event"}};
  event["metadata"] = {
      {"name", StrCat(GetName(object), ".", absl::Hex(clock_.MonotonicNanos()), ".", count_++)},
      {"namespace", GetNamespace(object)}};
  event["involvedObject"] = {
      {"apiVersion", kTfJobs.group_version},
      {"kind", "TFJob"},
      {"name", GetName(object)},
      {"namespace", GetNamespace(object)},
      {"uid", GetUid(object)},
      {"resourceVersion", GetText(Child(object, "metadata"), "resourceVersion")}};
  event["type"] = is_warning ? "Warning" : "Normal";
  event["reason"] = reason;
  event["message"] = message.substr(0, kMaxMessageBytes);
  event["source"] = {{"component", "muster-operator"}};
  event["firstTimestamp"] = now;
  event["lastTimestamp"] = now;
  event["count"] = 1;
  client_.Create(GetTarget(kEvents, GetNamespace(object)), event).IgnoreError();
}

}  // namespace muster::launch::kubernetes
