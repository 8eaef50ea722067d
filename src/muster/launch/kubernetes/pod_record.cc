#include "muster/launch/kubernetes/pod_record.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"

#include "muster/launch/kubernetes/pod_plan.h"

namespace muster::launch::kubernetes {
namespace {

using Phase = job::TaskObservation::Phase;

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
      if (TextOf(each, "name") == kContainerName) return each;
    }
    if (all.size() == 1) return all[0];
  }
  return Child(all, "");
}

const Json* FindCondition(const Json& status, std::string_view type) {
  const Json& conditions = Child(status, "conditions");
  if (!conditions.is_array()) return nullptr;
  for (const Json& condition : conditions) {
    if (TextOf(condition, "type") == type) return &condition;
  }
  return nullptr;
}

std::string LastLine(std::string_view text) {
  const std::string_view stripped = ToStd(absl::StripAsciiWhitespace(ToAbsl(text)));
  const size_t newline = stripped.rfind('\n');
  return std::string(
      stripped.substr(newline == stripped.npos ? 0 : newline + 1).substr(0, kMaxLineBytes));
}

// How a pod in phase Failed or Succeeded ended.
job::TaskEnd ReadEnd(const Json& status, bool succeeded) {
  job::TaskEnd end;
  const Json& terminated = Child(Child(ContainerStatus(status), "state"), "terminated");
  const std::string reason = TextOf(status, "reason");
  const Json* const disruption = FindCondition(status, "DisruptionTarget");
  end.disrupted =
      !succeeded && ((disruption != nullptr && TextOf(*disruption, "status") == "True") ||
                     reason == "Evicted" || reason == "NodeLost" || reason == "Preempting" ||
                     reason == "Shutdown" || reason == "Terminated");
  if (terminated.is_object()) {
    const int64_t code = NumberOf(terminated, "exitCode", -1);
    end.exit_code = static_cast<int>(std::clamp<int64_t>(code, -1, 255));
    end.out_of_memory = TextOf(terminated, "reason") == "OOMKilled";
    end.last_line = LastLine(TextOf(terminated, "message"));
  } else if (succeeded) {
    end.exit_code = 0;
  } else if (!end.disrupted) {
    // Nobody saw how the container ended: its node or kubelet is gone.
    end.lost = true;
  }
  if (end.disrupted) {
    const std::string why = disruption != nullptr ? TextOf(*disruption, "reason") : reason;
    end.detail = StrCat("ended by the platform: ", why);
  }
  return end;
}

std::string FindProblem(const Json& status) {
  const Json& waiting = Child(Child(ContainerStatus(status), "state"), "waiting");
  const std::string reason = TextOf(waiting, "reason");
  std::string problem;
  if (!reason.empty() && reason != "ContainerCreating" && reason != "PodInitializing") {
    problem = StrCat(reason, ": ", TextOf(waiting, "message"));
  } else if (const Json* const scheduled = FindCondition(status, "PodScheduled");
             scheduled != nullptr && TextOf(*scheduled, "status") == "False") {
    problem = StrCat(TextOf(*scheduled, "reason"), ": ", TextOf(*scheduled, "message"));
  }
  return problem.substr(0, kMaxLineBytes);
}

}  // namespace

std::optional<OwnerRecord> FindOwner(const Json& object) {
  const Json& owners = Child(Child(object, "metadata"), "ownerReferences");
  if (!owners.is_array()) return std::nullopt;
  for (const Json& owner : owners) {
    if (TextOf(owner, "kind") != "TFJob" || Child(owner, "controller") != true) continue;
    return OwnerRecord{.name = TextOf(owner, "name"), .uid = TextOf(owner, "uid")};
  }
  return std::nullopt;
}

std::optional<PodRecord> ReadPod(const Json& pod) {
  const Json& metadata = Child(pod, "metadata");
  const Json& labels = Child(metadata, "labels");
  const auto type = job::ParseTaskType(TextOf(labels, kTypeLabel));
  const int64_t index = ParseNumber(TextOf(labels, kIndexLabel), -1);
  if (!type || index < 0 || index > 1'000'000) return std::nullopt;
  PodRecord record = {.uid = UidOf(pod),
                      .version = VersionOf(pod),
                      .task = {*type, static_cast<int>(index)},
                      .incarnation = ParseNumber(
                          TextOf(Child(metadata, "annotations"), kIncarnationAnnotation), 0)};
  record.deleting = Child(metadata, "deletionTimestamp").is_string();
  const Json& status = Child(pod, "status");
  const std::string phase = TextOf(status, "phase");
  record.restarts_in_place = static_cast<int>(
      std::clamp<int64_t>(NumberOf(ContainerStatus(status), "restartCount"), 0, 1'000'000));
  if (phase == "Succeeded" || phase == "Failed") {
    record.phase = Phase::kEnded;
    record.end = ReadEnd(status, phase == "Succeeded");
  } else if (phase == "Running") {
    record.phase = Phase::kRunning;
  }
  if (record.phase != Phase::kEnded && !record.deleting) record.problem = FindProblem(status);
  return record;
}

PodRecord MakeGone(PodRecord last) {
  if (last.phase == Phase::kEnded || last.phase == Phase::kGone) {
    last.phase = Phase::kGone;
    return last;
  }
  last.phase = Phase::kGone;
  last.end = {.lost = true, .disrupted = true, .detail = "its pod was deleted"};
  last.problem.clear();
  return last;
}

}  // namespace muster::launch::kubernetes
