#include "muster/launch/ssh/host_choice.h"

#include <algorithm>

namespace muster::launch::ssh {

HostChoice::HostChoice(const job::JobSpec& spec, size_t hosts) : avoided_until_(hosts, 0) {
  size_t next = 0;
  for (const auto& [type, replica] : spec.replicas) {
    for (int i = 0; i < replica.replicas; ++i) places_[{type, i}] = next++ % hosts;
  }
}

bool HostChoice::IsGood(size_t host, double now) const { return avoided_until_[host] <= now; }

bool HostChoice::AnyGood(double now) const {
  return std::any_of(avoided_until_.begin(), avoided_until_.end(),
                     [now](double until) { return until <= now; });
}

size_t HostChoice::GetHost(job::TaskId task) const {
  const auto place = places_.find(task);
  return place == places_.end() ? 0 : place->second;
}

// Of the good hosts the one with the fewest tasks, and of those the next one.
size_t HostChoice::Choose(job::TaskId task, bool stays, double now) {
  size_t& place = places_[task];
  if (stays || IsGood(place, now) || !AnyGood(now)) return place;
  std::vector<int> tasks(avoided_until_.size(), 0);
  for (const auto& [other, host] : places_) tasks[host] += 1;
  const size_t lost = place;
  for (size_t i = 1; i < tasks.size(); ++i) {
    const size_t host = (lost + i) % tasks.size();
    const bool is_better = place == lost || tasks[host] < tasks[place];
    if (IsGood(host, now) && is_better) place = host;
  }
  return place;
}

void HostChoice::Avoid(size_t host, double now) { avoided_until_[host] = now + kAvoidSeconds; }

}  // namespace muster::launch::ssh
