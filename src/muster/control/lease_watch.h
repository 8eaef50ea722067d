// LeaseWatch: ends a task when the lease of its agent is over, whatever the agent's other threads
// are doing. Its thread looks at the clock and at the link to the coordinator and calls no file
// system, so that a hung mount, which may hold up a thread that reads the task's files for hours,
// does not prolong the lease.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "muster/base/clock.h"

namespace muster::control {

struct LeaseWatchOptions {
  // Returns the seconds of the coordinator's silence and the length of the lease. Any thread.
  struct Silence {
    double seconds = 0;
    double lease_seconds = 0;
  };
  std::function<Silence()> listen = {};
  // Ends the task and returns when that is done. It is called on the watch's thread, at most once.
  std::function<void()> end = {};
  // Time in which this process did not run, and time before Forgive(), is no silence. Where the
  // coordinator counts the lease by its own clock alone, this must be false.
  bool forgives = false;
  double look_seconds = 1;  // between two looks
};

// Thread-safe.
class LeaseWatch {
 public:
  // Starts the thread. `clock` must outlive the watch.
  LeaseWatch(LeaseWatchOptions options, const Clock* clock);
  // Waits for `end`, if that is being called.
  ~LeaseWatch();
  LeaseWatch(const LeaseWatch&) = delete;
  LeaseWatch& operator=(const LeaseWatch&) = delete;

  // Whether the lease is over. This stays true, and `end` follows unless the watch was released.
  bool over();
  // Whether `end` has been called.
  bool ends();
  // The coordinator was seen not to run: it could not have spoken until now.
  void Forgive();
  // The owner ends the task from now on, as it was ordered to: `end` is not called any more, and
  // waited for if it is being called.
  void Release();
  // After over(): returns when `end` has returned, or will not be called.
  void WaitForEnd();

 private:
  // With mutex_ held. Returns the seconds until the lease may be over.
  double Look();
  void Watch(const std::stop_token& stop);
  double now() const { return static_cast<double>(clock_->MonotonicNanos()) * 1e-9; }

  const LeaseWatchOptions options_;
  const Clock* const clock_;
  std::mutex mutex_;
  std::condition_variable_any change_;
  bool over_ = false;  // guarded by mutex_, as all below
  enum class End { kNotCalled, kRuns, kDone, kReleased } end_ = End::kNotCalled;
  double forgiven_at_ = 0;  // monotonic seconds; silence counts from then on
  double looked_at_ = 0;
  std::jthread thread_;  // last: it ends first
};

}  // namespace muster::control
