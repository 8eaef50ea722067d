// On which host each task runs, and with which of its GPUs: round robin in the order of the tasks,
// then on the same host again, unless that could not be reached a moment ago. No two tasks get the
// same GPU of a host.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "muster/job/job_spec.h"

namespace muster::launch::ssh {

struct TaskPlace {
  size_t host = 0;    // its number
  int first_gpu = 0;  // of the task's GPUs, which follow each other
  friend bool operator==(const TaskPlace&, const TaskPlace&) = default;
};

// One owner thread. Times are monotonic seconds.
class HostChoice {
 public:
  // How long a host that could not be reached is avoided.
  static constexpr double kAvoidSeconds = 60;

  HostChoice(const job::JobSpec& spec, size_t hosts);

  // The place of the task's next incarnation. `stays`: other tasks know the task's address, so that
  // it starts nowhere else.
  TaskPlace Choose(job::TaskId task, bool stays, double now);
  // Of the task's last incarnation, or of its first if there was none.
  TaskPlace GetPlace(job::TaskId task) const;
  // Where an earlier coordinator started the task. A host that there is not is ignored.
  void Restore(job::TaskId task, const TaskPlace& place);
  // The host could not be reached, or did not answer any more.
  void Avoid(size_t host, double now);
  // Whether there is a host that is not to be avoided.
  bool AnyGood(double now) const;

 private:
  bool IsGood(size_t host, double now) const;
  int FindFreeGpus(job::TaskId task, size_t host) const;
  int GetGpus(job::TaskId task) const;

  std::map<job::TaskType, int> gpus_;  // that each task of the type gets
  std::map<job::TaskId, TaskPlace> places_;
  std::vector<double> avoided_until_;
};

}  // namespace muster::launch::ssh
