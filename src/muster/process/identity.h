// ProcessIdentity: identifies a process so that its liveness can be checked later, from another
// process or machine, without confusing it with a later process of the same pid.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace muster::process {

struct ProcessIdentity {
  // One boot of one kernel and the pid namespace: the scope of `pid`. "": unknown.
  std::string machine = {};
  std::string host = {};  // for people
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // ProcessStat::start_ticks
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

ProcessIdentity ThisProcess();

enum class Liveness { kAlive, kDead, kElsewhere };
// kElsewhere: the process belongs to another machine, which cannot be checked from here. A stopped
// process is alive, a zombie is dead.
Liveness GetLiveness(const ProcessIdentity& process);

}  // namespace muster::process
