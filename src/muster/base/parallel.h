// A fixed crew of threads that run one function together: sub-batches of a training step.
#pragma once

#include <functional>
#include <memory>

namespace muster {

// Runs fn(0) ... fn(n-1), fn(0) on the calling thread, the others on the crew's n-1 threads, which
// spin a little and then sleep between calls. Run() returns when all have returned; it may be
// called from one thread at a time. With n == 1 no thread exists and Run() is a plain call.
class ThreadCrew {
 public:
  explicit ThreadCrew(int size);
  ~ThreadCrew();
  ThreadCrew(const ThreadCrew&) = delete;
  ThreadCrew& operator=(const ThreadCrew&) = delete;

  int size() const { return size_; }
  void Run(const std::function<void(int member)>& fn);
  // Inside Run only: returns when every member has called it. Establishes happens-before.
  void Barrier();

 private:
  struct Shared;
  int size_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace muster
