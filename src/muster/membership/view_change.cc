#include "muster/membership/view_change.h"

#include <algorithm>
#include <map>
#include <utility>

namespace muster::membership {
namespace {

using job::TaskId;
using job::TaskType;

std::map<TaskId, Member> GetByTask(const View& view) {
  std::map<TaskId, Member> by_task;
  for (const Member& member : view.members) by_task.emplace(member.id.task, member);
  return by_task;
}

// Without its state, which a change tells separately.
Member GetStateless(const Member& member) { return {.id = member.id, .address = member.address}; }

}  // namespace

int GetTypeOrder(TaskType type) {
  switch (type) {
    case TaskType::kChief:
    case TaskType::kMaster:
      return 0;
    case TaskType::kWorker:
      return 1;
    case TaskType::kPs:
      return 2;
    case TaskType::kEvaluator:
      return 3;
  }
  return 3;
}

void SortMembers(std::vector<Member>* members) {
  std::sort(members->begin(), members->end(), [](const Member& a, const Member& b) {
    const TaskId x = a.id.task, y = b.id.task;
    return std::pair(GetTypeOrder(x.type), x) < std::pair(GetTypeOrder(y.type), y);
  });
}

ViewChange GetChange(const View& base, const View& view) {
  ViewChange change = {
      .generation = view.generation, .base = base.generation, .replicas = view.replicas};
  std::map<TaskId, Member> before = GetByTask(base);
  for (const Member& member : view.members) {
    const auto found = before.find(member.id.task);
    const bool is_known =
        found != before.end() && GetStateless(found->second) == GetStateless(member);
    if (found != before.end()) before.erase(found);
    if (!is_known) change.members.push_back(GetStateless(member));
    if (change.states.empty() || change.states.back().state != member.state()) {
      change.states.push_back({.state = member.state()});
    }
    ++change.states.back().members;
  }
  for (const auto& [task, member] : before) change.gone.push_back(task);
  return change;
}

absl::StatusOr<View> ApplyChange(const View& base, const ViewChange& change) {
  const auto refuse = [&](std::string_view what) {
    return absl::InvalidArgumentError(StrCat("a change of view ", change.base, " to view ",
                                             change.generation, ", where this task has view ",
                                             base.generation, ": ", what));
  };
  if (change.base != base.generation || change.generation <= base.generation) {
    return refuse("it belongs to another one");
  }
  std::map<TaskId, Member> by_task = GetByTask(base);
  for (const TaskId task : change.gone) {
    if (by_task.erase(task) == 0) return refuse("it removes a task that is not there");
  }
  for (const Member& member : change.members) by_task[member.id.task] = member;
  View view = {.generation = change.generation, .replicas = change.replicas};
  for (auto& [task, member] : by_task) view.members.push_back(std::move(member));
  SortMembers(&view.members);
  const size_t size = view.members.size();
  if (size == 0 || size > kMaxMembers) return refuse("it leaves no or too many members");
  if (change.replicas < 0 || std::cmp_greater(change.replicas, size)) {
    return refuse("it has more replicas than members");
  }
  size_t at = 0;
  for (const ViewChange::Run& run : change.states) {
    if (run.members < 1 || std::cmp_greater(run.members, size - at)) {
      return refuse("it has states of more members than there are");
    }
    for (int64_t i = 0; i < run.members; ++i, ++at) {
      view.members[at].step = run.state.step;
      view.members[at].state_generation = run.state.generation;
    }
  }
  if (at != size) return refuse("it has states of fewer members than there are");
  return view;
}

}  // namespace muster::membership
