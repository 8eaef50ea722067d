// A point in monotonic time at which a blocking call gives up.
#pragma once

#include <chrono>

namespace muster::process {

class Deadline {
 public:
  // Zero or a negative number means now, so that a call only polls. At most a year ahead.
  static Deadline After(double seconds);

  bool expired() const { return Clock::now() >= at_; }
  // The remaining time, for poll(): rounded up, so that a wait does not wake just before its time.
  int PollMillis() const;

 private:
  using Clock = std::chrono::steady_clock;
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

// Waits until one of the descriptors is readable or has hung up, or the deadline passes; -1 is
// skipped. True: one is readable or has hung up.
bool PollReadable(const int* fds, int count, Deadline deadline);

}  // namespace muster::process
