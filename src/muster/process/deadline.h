// A point in monotonic time at which a blocking call gives up.
#pragma once

#include <chrono>

namespace muster::process {

class Deadline {
 public:
  // Zero, a negative number: now, so that a call only looks. Far away is a year.
  static Deadline After(double seconds);

  bool expired() const { return Clock::now() >= at_; }
  // What is left, for poll(): rounded up, so that a wait does not wake just before its time.
  int PollMillis() const;

 private:
  using Clock = std::chrono::steady_clock;
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

// Waits until one of the descriptors is readable or has hung up, or the deadline passes; -1 is
// passed over. True: one is.
bool PollReadable(const int* fds, int count, Deadline deadline);

}  // namespace muster::process
