// On which host each task runs: round robin in the order of the tasks, then on the same host again,
// unless that could not be reached a moment ago.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "muster/job/job_spec.h"

namespace muster::launch::ssh {

// One owner thread. Times are monotonic seconds.
class HostChoice {
 public:
  // A host that could not be reached is avoided for so long.
  static constexpr double kAvoidSeconds = 60;

  HostChoice(const job::JobSpec& spec, size_t hosts);

  // The number of the host for the task's next incarnation. `stays`: other tasks know the task's
  // address, so that it starts nowhere else.
  size_t Choose(job::TaskId task, bool stays, double now);
  // Of the task's last incarnation, or of its first if there was none.
  size_t GetHost(job::TaskId task) const;
  // The host could not be reached, or did not answer any more.
  void Avoid(size_t host, double now);
  // Whether a host is not to be avoided.
  bool AnyGood(double now) const;

 private:
  bool IsGood(size_t host, double now) const;

  std::map<job::TaskId, size_t> places_;
  std::vector<double> avoided_until_;
};

}  // namespace muster::launch::ssh
