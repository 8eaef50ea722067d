// WorkQueue: keys that are due, each once. A key that is added while a worker has it becomes due
// again when that worker is done, so that two workers never have the same key.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "muster/base/clock.h"

namespace muster::launch::kubernetes {

// Any thread.
class WorkQueue {
 public:
  // `pause`: seconds that at least lie between two turns of a key, so that a burst of changes is
  // dealt with at once. A new key is dealt with as if it had been due `head_start` seconds earlier.
  // After n failures in a row a key waits `first_backoff` * 2^(n-1) seconds, at
  // most `longest_backoff`.
  struct Options {
    double pause = 0;
    double head_start = 0;
    double first_backoff = 0.1;
    double longest_backoff = 60;
  };
  WorkQueue(const Clock& clock, Options options) : clock_(clock), options_(options) {}

  // The key is due after `seconds`, or earlier if it was due earlier already.
  void Add(const std::string& key, double seconds = 0);
  // The key is due at once, however often it has failed: somebody has changed what it is about.
  void Hurry(const std::string& key);
  // Waits until a key is due and gives it to the caller, who must call Done(); nullopt after
  // Stop().
  std::optional<std::string> Take();
  // Ends the turn of a key.
  enum class Outcome { kDone, kFailed };
  void Done(const std::string& key, Outcome outcome);
  // The key of something that is gone: its failures are forgotten.
  void Forget(const std::string& key);
  void Stop();

  size_t size() const;  // keys that wait

 private:
  struct Entry {
    double due = 0;         // monotonic seconds; less than 0: it does not wait
    double not_before = 0;  // the end of its last turn and the pause after it
    double ended = 0;       // its last turn
    int failures = 0;       // in a row
    bool taken = false;
    bool hurried = false;  // while it was taken
  };
  double Now() const { return static_cast<double>(clock_.MonotonicNanos()) * 1e-9; }
  void Schedule(const std::string& key, Entry* entry, double due);

  const Clock& clock_;
  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry> entries_ = {};              // guarded by mutex_
  std::set<std::pair<double, std::string>> waiting_ = {};  // by due; guarded by mutex_
  bool stopped_ = false;                                   // guarded by mutex_
};

}  // namespace muster::launch::kubernetes
