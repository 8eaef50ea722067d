// ProcessIdentity: a process as others may ask for it later, from another process or another
// machine, without taking one that was given the same pid for it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace muster::process {

struct ProcessIdentity {
  // One boot of one kernel and the pid namespace: where `pid` means something. "": unknown.
  std::string machine = {};
  std::string host = {};  // for people
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // ProcessStat::start_ticks
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

ProcessIdentity ThisProcess();

enum class Liveness { kAlive, kDead, kElsewhere };
// kElsewhere: it is of another machine, where this one cannot look. A stopped process is alive, a
// zombie is dead.
Liveness LivenessOf(const ProcessIdentity& process);

}  // namespace muster::process
