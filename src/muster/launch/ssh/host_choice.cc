#include "muster/launch/ssh/host_choice.h"

#include <algorithm>

#include "muster/job/pod_template.h"

namespace muster::launch::ssh {

HostChoice::HostChoice(const job::JobSpec& spec, size_t hosts) : avoided_until_(hosts, 0) {
  size_t next = 0;
  for (const auto& [type, replica] : spec.replicas) {
    const auto process = job::ParseProcess(replica.pod_template);
    gpus_[type] = process.ok() ? process->gpus : 0;
    for (int i = 0; i < replica.replicas; ++i) {
      const job::TaskId task{type, i};
      const size_t host = next++ % hosts;
      places_[task] = {.host = host, .first_gpu = FindFreeGpus(task, host)};
    }
  }
}

int HostChoice::GetGpus(job::TaskId task) const {
  const auto gpus = gpus_.find(task.type);
  return gpus == gpus_.end() ? 0 : gpus->second;
}

// Returns the lowest GPUs in a row that no other task of the host has.
int HostChoice::FindFreeGpus(job::TaskId task, size_t host) const {
  std::vector<std::pair<int, int>> taken;  // first, and after the last
  for (const auto& [other, place] : places_) {
    if (other == task || place.host != host || GetGpus(other) == 0) continue;
    taken.emplace_back(place.first_gpu, place.first_gpu + GetGpus(other));
  }
  std::sort(taken.begin(), taken.end());
  int first = 0;
  for (const auto& [begin, end] : taken) {
    if (begin - first >= GetGpus(task)) break;
    first = std::max(first, end);
  }
  return first;
}

bool HostChoice::IsGood(size_t host, double now) const { return avoided_until_[host] <= now; }

bool HostChoice::AnyGood(double now) const {
  return std::any_of(avoided_until_.begin(), avoided_until_.end(),
                     [now](double until) { return until <= now; });
}

TaskPlace HostChoice::GetPlace(job::TaskId task) const {
  const auto place = places_.find(task);
  return place == places_.end() ? TaskPlace{} : place->second;
}

void HostChoice::Restore(job::TaskId task, const TaskPlace& place) {
  if (place.host < avoided_until_.size()) places_[task] = place;
}

// Chooses, of the good hosts, one with the fewest tasks, and of these the next in turn.
TaskPlace HostChoice::Choose(job::TaskId task, bool stays, double now) {
  TaskPlace& place = places_[task];
  if (stays || IsGood(place.host, now) || !AnyGood(now)) return place;
  std::vector<int> tasks(avoided_until_.size(), 0);
  for (const auto& [other, at] : places_) tasks[at.host] += 1;
  const size_t lost = place.host;
  size_t best = lost;
  for (size_t i = 1; i < tasks.size(); ++i) {
    const size_t host = (lost + i) % tasks.size();
    const bool is_better = best == lost || tasks[host] < tasks[best];
    if (IsGood(host, now) && is_better) best = host;
  }
  place = {.host = best, .first_gpu = FindFreeGpus(task, best)};
  return place;
}

void HostChoice::Avoid(size_t host, double now) { avoided_until_[host] = now + kAvoidSeconds; }

}  // namespace muster::launch::ssh
