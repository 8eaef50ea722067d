#include "muster/base/parallel.h"

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

namespace muster {

struct ThreadCrew::Shared {
  explicit Shared(int size) : barrier(size), done(size) {}

  const std::function<void(int)>* fn = nullptr;  // null: the crew disbands
  std::atomic<uint64_t> round{0};
  std::barrier<> barrier;  // for the members' own Barrier()
  std::barrier<> done;     // ends a round
  std::vector<std::jthread> threads;
};

ThreadCrew::ThreadCrew(int size) : size_(size) {
  if (size <= 1) return;
  shared_ = std::make_unique<Shared>(size);
  for (int member = 1; member < size; ++member) {
    shared_->threads.emplace_back([shared = shared_.get(), member] {
      for (uint64_t seen = 0;; ++seen) {
        shared->round.wait(seen, std::memory_order_acquire);
        if (shared->fn == nullptr) return;
        (*shared->fn)(member);
        shared->done.arrive_and_wait();
      }
    });
  }
}

ThreadCrew::~ThreadCrew() {
  if (!shared_) return;
  shared_->fn = nullptr;
  shared_->round.fetch_add(1, std::memory_order_release);
  shared_->round.notify_all();
}

void ThreadCrew::Run(const std::function<void(int)>& fn) {
  if (!shared_) {
    fn(0);
    return;
  }
  shared_->fn = &fn;
  shared_->round.fetch_add(1, std::memory_order_release);
  shared_->round.notify_all();
  fn(0);
  shared_->done.arrive_and_wait();
}

void ThreadCrew::Barrier() {
  if (shared_) shared_->barrier.arrive_and_wait();
}

}  // namespace muster
