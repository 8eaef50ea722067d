// Room: what the coordinator of a job does that has got some of its processes and lacks others.
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/control/coordinator.h"

namespace muster::control {
namespace {

constexpr size_t kMaxNames = 3;

}  // namespace

std::optional<job::GiveBack> Coordinator::LookForRoom() {
  if (!gang_wait_) {
    const std::string seed = StrCat(spec_.name, " ", environment_.clock->WallSeconds(), " ", now());
    gang_wait_.emplace(options_.gang_seconds, std::hash<std::string>()(seed));
  }
  GangLook look;
  std::vector<job::TaskId> missing, waiting, running;
  const bool is_active = status_.phase == job::JobPhase::kActive && options_.gang_seconds > 0;
  for (const auto& [id, task] : status_.tasks) {
    const bool lacks = is_active && task.phase == job::TaskPhase::kStarting &&
                       environment_.launcher->LacksProcess(id, task.incarnation);
    if (!lacks) continue;
    missing.push_back(id);
    look.missing.insert({id, task.incarnation});
  }
  bool has_steps = false;
  for (const auto& [id, task] : status_.tasks) {
    const bool needs_more = std::any_of(missing.begin(), missing.end(), [&, it = id](auto other) {
      return it != other && Needs(it, other);
    });
    const Agent* const agent = CurrentAgent(id, task.incarnation);
    if (!needs_more || agent == nullptr || look.missing.contains({id, task.incarnation})) continue;
    if (task.phase == job::TaskPhase::kStarting && !agent->start) waiting.push_back(id);
    if (task.phase != job::TaskPhase::kRunning || !agent->report) continue;
    running.push_back(id);
    has_steps = has_steps || agent->report->step.has_value();
    const double idle = agent->report->idle_seconds + (now() - agent->last_heard);
    look.still_seconds = std::min(look.still_seconds, idle);
  }
  // A program that counts no steps may continue without the others, and say nothing of it.
  if (has_steps) waiting.insert(waiting.end(), running.begin(), running.end());
  look.is_held = !waiting.empty();
  const std::optional<double> waited = gang_wait_->Look(look, now());
  if (!waited) return std::nullopt;
  return MakeGiveBack(missing, waiting, *waited);
}

job::GiveBack Coordinator::MakeGiveBack(const std::vector<job::TaskId>& missing,
                                        const std::vector<job::TaskId>& holders, double waited) {
  std::vector<std::string> names;
  for (const job::TaskId id : missing) {
    if (names.size() < kMaxNames) names.push_back(job::TaskName(id));
  }
  if (missing.size() > kMaxNames) names.push_back(StrCat(missing.size() - kMaxNames, " more"));
  const double pause = gang_wait_->DrawPause();
  job::GiveBack give_back = {.tasks = missing, .pause_seconds = pause};
  give_back.tasks.insert(give_back.tasks.end(), holders.begin(), holders.end());
  const int before = status_.gave_back;
  give_back.note = StrCat(
      absl::StrJoin(names, ", "), " (", missing.size(), " of ", spec_.total(), " tasks) got no ",
      environment_.launcher->DescribeProcess(), " within ", job::PrintDuration(std::floor(waited)),
      ", and ", holders.size(),
      holders.size() == 1 ? " other holds its own" : " others hold theirs",
      " in vain: the job gives back what it has, so that another one may begin, and asks for all ",
      "again after ", job::PrintDuration(std::ceil(pause)),
      before > 0 ? StrCat(", as ", before, before == 1 ? " time" : " times", " before") : "",
      "; where this does not end, let it have fewer or smaller tasks, or another queue");
  return give_back;
}

}  // namespace muster::control
