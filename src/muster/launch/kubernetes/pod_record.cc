#include "muster/launch/kubernetes/pod_record.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/time/time.h"

#include "muster/launch/kubernetes/admission.h"
#include "muster/launch/kubernetes/hidden_secrets.h"
#include "muster/launch/kubernetes/pod_plan.h"

namespace muster::launch::kubernetes {
namespace {

using Phase = job::TaskObservation::Phase;

constexpr std::string_view kCrashing = "CrashLoopBackOff: back-off";
constexpr std::string_view kGated = "SchedulingGated";
constexpr char kInitStatuses[] = "initContainerStatuses";
constexpr size_t kMaxLineBytes = 400;  // of a task's last line, and of a problem

int64_t ParseNumber(const std::string& text, int64_t fallback) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : fallback;
}

// The status of the container named tensorflow, or of the only one.
const Json& ContainerStatus(const Json& status) {
  const Json& all = Child(status, "containerStatuses");
  if (all.is_array()) {
    for (const Json& each : all) {
      if (GetText(each, "name") == kContainerName) return each;
    }
    if (all.size() == 1) return all[0];
  }
  return Child(all, "");
}

const Json* FindCondition(const Json& status, std::string_view type) {
  const Json& conditions = Child(status, "conditions");
  if (!conditions.is_array()) return nullptr;
  for (const Json& condition : conditions) {
    if (GetText(condition, "type") == type) return &condition;
  }
  return nullptr;
}

std::string MemoryLimit(const Json& pod) {
  const Json* const container = FindContainer(pod);
  if (container == nullptr) return "";
  return GetText(Child(Child(*container, "resources"), "limits"), "memory");
}

std::string LastLine(std::string_view text) {
  const std::string_view stripped = ToStd(absl::StripAsciiWhitespace(ToAbsl(text)));
  const size_t newline = stripped.rfind('\n');
  const std::string_view line = stripped.substr(newline == stripped.npos ? 0 : newline + 1);
  return HideSecrets(line).substr(0, kMaxLineBytes);
}

// Whether a container that has ended did so while its pod was being deleted.
bool EndedByDeletion(const Json& pod, const Json& terminated) {
  const Json& metadata = Child(pod, "metadata");
  absl::Time deadline, finished;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, GetText(metadata, "deletionTimestamp"), &deadline,
                       &error)) {
    return false;
  }
  if (!absl::ParseTime(absl::RFC3339_full, GetText(terminated, "finishedAt"), &finished, &error)) {
    return true;
  }
  const int64_t grace = GetNumber(metadata, "deletionGracePeriodSeconds");
  return finished >= deadline - absl::Seconds(grace);  // both are whole seconds
}

// How a container's run ended, by its state `terminated`.
job::TaskEnd ReadTerminated(const Json& pod, const Json& terminated) {
  job::TaskEnd end;
  const int64_t code = GetNumber(terminated, "exitCode", -1);
  end.exit_code = static_cast<int>(std::clamp<int64_t>(code, -1, 255));
  end.out_of_memory = GetText(terminated, "reason") == "OOMKilled";
  end.last_line = LastLine(GetText(terminated, "message"));
  if (end.out_of_memory) {
    const std::string limit = MemoryLimit(pod);
    end.detail = limit.empty() ? "no memory was left on its node"
                               : StrCat("it needed more than its limit of ", limit, " of memory");
  }
  return end;
}

// The end of a pod whose container named tensorflow never ran: an init container failed. Its exit
// code is not the task's, and does not say whether the task may start again.
std::optional<job::TaskEnd> ReadInitEnd(const Json& pod) {
  const Json& all = Child(Child(pod, "status"), kInitStatuses);
  if (!all.is_array()) return std::nullopt;
  for (const Json& each : all) {
    const Json& terminated = Child(Child(each, "state"), "terminated");
    if (!terminated.is_object() || GetNumber(terminated, "exitCode") == 0) continue;
    const job::TaskEnd end = ReadTerminated(pod, terminated);
    return job::TaskEnd{.detail = StrCat("its init container ", GetText(each, "name"),
                                         " failed with exit code ", end.exit_code),
                        .last_line = end.last_line};
  }
  return std::nullopt;
}

// How a pod in phase Failed or Succeeded ended.
job::TaskEnd ReadEnd(const Json& pod, bool succeeded) {
  const Json& status = Child(pod, "status");
  const Json& terminated = Child(Child(ContainerStatus(status), "state"), "terminated");
  job::TaskEnd end = terminated.is_object() ? ReadTerminated(pod, terminated) : job::TaskEnd();
  const std::string reason = GetText(status, "reason");
  const Json* const disruption = FindCondition(status, "DisruptionTarget");
  end.disrupted =
      !succeeded && ((disruption != nullptr && GetText(*disruption, "status") == "True") ||
                     reason == "Evicted" || reason == "NodeLost" || reason == "Preempting" ||
                     reason == "Shutdown" || reason == "Terminated");
  const bool deleted = !succeeded && !end.disrupted && EndedByDeletion(pod, terminated);
  if (deleted) {
    end.disrupted = true;
    end.detail = kPodWasDeleted;
  }
  if (end.disrupted && !deleted) {
    const std::string why = disruption != nullptr ? GetText(*disruption, "reason") : reason;
    end.detail = StrCat("ended by the platform: ", why);
  }
  if (terminated.is_object()) return end;
  if (succeeded) {
    end.exit_code = 0;
  } else if (!end.disrupted) {
    if (const auto init = ReadInitEnd(pod)) return *init;
    // Nobody saw how the container ended: its node or kubelet is gone.
    end.lost = true;
  }
  return end;
}

// How the run of a container ended before the kubelet started it again, if it did.
std::optional<job::TaskEnd> ReadEndInPlace(const Json& pod, const Json& container_status) {
  const Json& terminated = Child(Child(container_status, "lastState"), "terminated");
  if (!terminated.is_object()) return std::nullopt;
  return ReadTerminated(pod, terminated);
}

// "; the last run: exit code 3, with 'ValueError'"; "" for none.
std::string DescribeLastRun(const std::optional<job::TaskEnd>& end) {
  if (!end) return "";
  return StrCat("; the last run: ", end->Describe(),
                end->last_line.empty() ? "" : StrCat(", with '", end->last_line, "'"));
}

// Why a pod goes on whose container named tensorflow has ended; "" if it ends with it.
std::string FindRest(const Json& pod) {
  const Json& status = Child(pod, "status");
  const Json& terminated = Child(Child(ContainerStatus(status), "state"), "terminated");
  const bool may_run_again = GetText(Child(pod, "spec"), "restartPolicy") != "Never" &&
                             GetNumber(terminated, "exitCode") != 0;
  if (!terminated.is_object() || may_run_again) return "";
  for (const Json& each : Child(status, "containerStatuses")) {
    if (!Child(Child(each, "state"), "running").is_object()) continue;
    return StrCat(
        "its container ", kContainerName, " has ended (",
        ReadTerminated(pod, terminated).Describe(), "), but the container ", GetText(each, "name"),
        " still runs, and a pod ends with its last container; one that shall end with the "
        "others is an init container with restartPolicy Always");
  }
  return "";
}

// Why an init container does not start, or is not started again.
std::string FindInitProblem(const Json& pod) {
  const Json& all = Child(Child(pod, "status"), kInitStatuses);
  if (!all.is_array()) return "";
  for (const Json& each : all) {
    const Json& waiting = Child(Child(each, "state"), "waiting");
    const std::string reason = GetText(waiting, "reason");
    if (reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing") continue;
    return StrCat(reason, ": init container ", GetText(each, "name"), ": ",
                  GetText(waiting, "message"), DescribeLastRun(ReadEndInPlace(pod, each)));
  }
  return "";
}

}  // namespace

std::optional<OwnerRecord> FindOwner(const Json& object) {
  const Json& owners = Child(Child(object, "metadata"), "ownerReferences");
  if (!owners.is_array()) return std::nullopt;
  for (const Json& owner : owners) {
    if (GetText(owner, "kind") != "TFJob" || Child(owner, "controller") != true) continue;
    return OwnerRecord{.name = GetText(owner, "name"), .uid = GetText(owner, "uid")};
  }
  return std::nullopt;
}

// What the server says of a pod with a gate stays there until a scheduler has looked at the pod.
std::string FindPodProblem(const Json& pod) {
  const Json& status = Child(pod, "status");
  const Json& waiting = Child(Child(ContainerStatus(status), "state"), "waiting");
  const std::string reason = GetText(waiting, "reason");
  std::string problem;
  if (!reason.empty() && reason != "ContainerCreating" && reason != "PodInitializing") {
    problem = StrCat(reason, ": ", GetText(waiting, "message"));
  } else if (const Json* const scheduled = FindCondition(status, "PodScheduled");
             scheduled != nullptr && GetText(*scheduled, "status") == "False" &&
             GetText(*scheduled, "reason") != kGated) {
    problem = StrCat(GetText(*scheduled, "reason"), ": ", GetText(*scheduled, "message"));
  }
  problem = problem.substr(0, kMaxLineBytes);
  if (problem.empty()) problem = FindInitProblem(pod);
  if (problem.starts_with(kCrashing)) {
    problem += DescribeLastRun(ReadEndInPlace(pod, ContainerStatus(status)));
  }
  if (problem.empty()) problem = FindRest(pod);
  return problem;
}

std::optional<PodRecord> ReadPod(const Json& pod) {
  const Json& metadata = Child(pod, "metadata");
  const Json& labels = Child(metadata, "labels");
  const auto type = job::ParseTaskType(GetText(labels, kTypeLabel));
  const int64_t index = ParseNumber(GetText(labels, kIndexLabel), -1);
  if (!type || index < 0 || index > 1'000'000) return std::nullopt;
  PodRecord record = {.uid = GetUid(pod),
                      .version = GetVersion(pod),
                      .task = {*type, static_cast<int>(index)},
                      .incarnation = ParseNumber(
                          GetText(Child(metadata, "annotations"), kIncarnationAnnotation), 0)};
  record.deleting = Child(metadata, "deletionTimestamp").is_string();
  record.gated = HasAdmissionGate(pod);
  record.has_node = !GetText(Child(pod, "spec"), "nodeName").empty();
  const Json& status = Child(pod, "status");
  const std::string phase = GetText(status, "phase");
  record.restarts_in_place = static_cast<int>(
      std::clamp<int64_t>(GetNumber(ContainerStatus(status), "restartCount"), 0, 1'000'000));
  if (phase == "Succeeded" || phase == "Failed") {
    record.phase = Phase::kEnded;
    record.end = ReadEnd(pod, phase == "Succeeded");
  } else if (phase == "Running") {
    record.phase = Phase::kRunning;
  }
  const bool may_run = record.phase != Phase::kEnded && !record.deleting && !record.gated;
  record.end_in_place = ReadEndInPlace(pod, ContainerStatus(status));
  if (may_run) record.problem = FindPodProblem(pod);
  return record;
}

PodRecord MakeGone(PodRecord last) {
  if (last.phase == Phase::kEnded || last.phase == Phase::kGone) {
    last.phase = Phase::kGone;
    return last;
  }
  last.phase = Phase::kGone;
  last.end = {.lost = true, .disrupted = true, .detail = kPodWasDeleted};
  last.problem.clear();
  return last;
}

}  // namespace muster::launch::kubernetes
