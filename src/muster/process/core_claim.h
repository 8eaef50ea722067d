// CoreClaim: a core for two threads of which one always waits for the other, such as a process and
// the helper that it queries. On two cores, each would also wait for the other core to wake, which
// on a virtual machine costs more than a small answer.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <optional>

#include "muster/process/descriptor.h"

namespace muster::process {

// Claims exclude only each other: on this machine (more exactly, in its network namespace) a core
// has at most one claim at a time, until this object or the process ends. One owner thread.
class CoreClaim {
 public:
  // Claims a core that this thread may run on, if possible the one that it runs on now. nullopt if
  // all are claimed, and if there is only one, since there is no choice then.
  static std::optional<CoreClaim> Take();

  int core() const { return core_; }
  // Binds the process' first thread to the core. False if the system refuses.
  bool Bind(pid_t process) const;

  // Binds the thread that makes this object to the core for the object's lifetime; afterwards the
  // thread may run where it could before. Threads started in between are bound, too. The claim must
  // outlive this object.
  class Stay {
   public:
    explicit Stay(const CoreClaim& claim);
    ~Stay();
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

   private:
    const CoreClaim& claim_;
    const pid_t thread_;
    const bool bound_;
  };

 private:
  CoreClaim(int core, const cpu_set_t& before, Descriptor name)
      : core_(core), before_(before), name_(std::move(name)) {}

  int core_;
  cpu_set_t before_;  // where this thread could run
  Descriptor name_;   // a socket whose name is the core's
};

}  // namespace muster::process
