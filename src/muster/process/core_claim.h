// CoreClaim: a core for two threads of which one always waits for the other, such as a process and
// the helper that it asks. Woken on another core, each would wait for that core to wake, too, which
// on a virtual machine costs more than a small answer.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <optional>

#include "muster/process/descriptor.h"

namespace muster::process {

// Only among those who claim: on this machine (its network namespace, to be exact) a core is
// claimed once at a time, until this ends or the process does. One owner thread.
class CoreClaim {
 public:
  // One that this thread may run on, the one that it is on if it can be. nullopt when all are
  // claimed, and where there is but one: nothing is to be chosen then.
  static std::optional<CoreClaim> Take();

  int core() const { return core_; }
  // Binds the process' first thread to the core. False where the system refuses.
  bool Bind(pid_t process) const;

  // The thread that makes it stays on the core while it lives; then it may run where it might
  // before. Threads that it starts in between are bound, too. The claim outlives it.
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
  cpu_set_t before_;  // where this thread might run
  Descriptor name_;   // a socket whose name is the core's
};

}  // namespace muster::process
