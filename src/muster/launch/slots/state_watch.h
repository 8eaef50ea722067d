// StateWatch: looks whether a coordinator that moves still has its job's state (shared_state.h). A
// coordinator that is cut off from the folder cannot know whether another one has begun; when it
// has been for long, it must end, so that its agents do.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::launch::slots {

struct StateWatchOptions {
  std::string journal = {};       // its path, while the state is this coordinator's
  double patience_seconds = 300;  // the longest time in which it is not seen
  double look_seconds = 5;
};

class StateWatch {
 public:
  // `files` and the clock must outlive it. Looks are made by a thread of its own.
  StateWatch(StateWatchOptions options, io::FileSystem& files, const Clock& clock);
  // Waits for the look in progress.
  ~StateWatch();
  StateWatch(const StateWatch&) = delete;
  StateWatch& operator=(const StateWatch&) = delete;

  // ABORTED once another attempt has the state, or that cannot be ruled out any more. Any thread;
  // does not wait.
  absl::Status status();

 private:
  void Loop(const std::stop_token& stop);
  double now() const { return static_cast<double>(clock_.MonotonicNanos()) * 1e-9; }

  const StateWatchOptions options_;
  io::FileSystem& files_;
  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable_any pause_;
  double seen_at_;  // guarded by mutex_, as all below: when the last look began that saw it
  bool gone_ = false;
  std::string error_;  // of the last look
  std::jthread loop_;  // last member, so that it ends first
};

}  // namespace muster::launch::slots
