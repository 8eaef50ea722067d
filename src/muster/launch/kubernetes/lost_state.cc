#include "muster/launch/kubernetes/lost_state.h"

#include <algorithm>

#include "absl/time/time.h"

#include "muster/launch/kubernetes/job_plan.h"

namespace muster::launch::kubernetes {
namespace {

// In seconds since 1970; 0 if it is none.
double ParseTime(const std::string& text) {
  absl::Time time;
  std::string error;
  return absl::ParseTime(absl::RFC3339_full, text, &time, &error)
             ? static_cast<double>(absl::ToUnixSeconds(time))
             : 0;
}

job::Condition ReadCondition(const Json& json) {
  return {.type = GetText(json, "type"),
          .is_true = GetText(json, "status") == "True",
          .reason = GetText(json, "reason"),
          .message = GetText(json, "message"),
          .last_update = ParseTime(GetText(json, "lastUpdateTime")),
          .last_transition = ParseTime(GetText(json, "lastTransitionTime"))};
}

}  // namespace

bool HasLostItsState(const JobView& view) {
  return view.object != nullptr && GetForeignStatus(*view.object) == ForeignStatus::kActive &&
         std::any_of(view.pods.begin(), view.pods.end(),
                     [](const auto& pod) { return pod.second.incarnation > 0; });
}

job::JobStatus RebuildState(const JobView& view, const job::Now& now) {
  const Json& status = Child(*view.object, "status");
  job::JobStatus state;
  for (const Json& condition : Child(status, "conditions")) {
    state.conditions.push_back(ReadCondition(condition));
  }
  state.start_time = ParseTime(GetText(status, "startTime"));
  if (state.start_time > 0) state.clock = std::max(0.0, now.wall - state.start_time);
  state.last_wall = now.wall;
  state.last_monotonic = now.monotonic;
  state.clock_id = now.clock_id;
  for (const auto& [name, pod] : view.pods) {
    state.next_incarnation = std::max(state.next_incarnation, pod.incarnation + 1);
    if (IsGone(pod) || pod.incarnation == 0) continue;
    job::TaskStatus& task = state.tasks[pod.task];
    task.phase = job::TaskPhase::kStarting;
    task.incarnation = pod.incarnation;
  }
  return state;
}

}  // namespace muster::launch::kubernetes
