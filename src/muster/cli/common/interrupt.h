// SIGINT, SIGTERM and SIGHUP as requests to stop: the first signal requests it, a second one ends
// the process at once. One that follows the first within half a second is the same request:
// timeout(1) signals the program and then its process group. A closing terminal may send SIGHUP
// twice, too, so SIGHUP only ever requests.
// SIGINT (Ctrl-C) is meant for the whole job. SIGTERM (a drain, an eviction, a preemption) and
// SIGHUP are meant for this process alone: in a training of several tasks the others continue or
// wait for its replacement.
#pragma once

#include <atomic>
#include <string>

namespace muster::cli {

// Installs the handlers while it exists; there may be only one scope at a time. A SIGHUP that is
// ignored (nohup) remains ignored.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  static const std::atomic<bool>& requested();
  // Returns what requested the stop: "Ctrl-C", "SIGTERM" or "SIGHUP (its terminal was closed)"; ""
  // if nothing has.
  static std::string StoppedBy();
  // Whether the request was for this process alone, by SIGTERM or SIGHUP. Remains set after the
  // scope has ended.
  static const std::atomic<bool>& terminated();
};

}  // namespace muster::cli
