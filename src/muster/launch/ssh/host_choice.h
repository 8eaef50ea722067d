// HostChoice: decides on which host each task runs. The tasks are dealt round robin in their order;
// later incarnations run on the same host again, unless that host could not be reached recently.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "muster/job/job_spec.h"

namespace muster::launch::ssh {

// One owner thread. Times are monotonic seconds.
class HostChoice {
 public:
  // How long a host that could not be reached is avoided.
  static constexpr double kAvoidSeconds = 60;

  HostChoice(const job::JobSpec& spec, size_t hosts);

  // The number of the host for the task's next incarnation. `stays`: other tasks know the task's
  // address, so that it starts nowhere else.
  size_t Choose(job::TaskId task, bool stays, double now);
  // The host of the task's last incarnation, or of its first if there was none yet.
  size_t GetHost(job::TaskId task) const;
  // Call it when the host could not be reached, or no longer answered.
  void Avoid(size_t host, double now);
  // Whether there is a host that is not to be avoided.
  bool AnyGood(double now) const;

 private:
  bool IsGood(size_t host, double now) const;

  std::map<job::TaskId, size_t> places_;
  std::vector<double> avoided_until_;
};

}  // namespace muster::launch::ssh
