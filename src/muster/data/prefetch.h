// Prefetch: a thread that produces items ahead of their use, in order.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "muster/base/status.h"

namespace muster::data {

// Calls `produce` on a separate thread, up to `depth` items ahead, and returns the items in order.
// The consumer gives back a used item with Recycle(), so that its memory is reused. Only one
// consumer thread may call Next(), Peek() and Recycle(). An error or the end reaches the consumer
// after all items produced before it. The destructor stops the producer and joins it.
template <typename Item>
class Prefetch {
 public:
  // Fills *item; returns false at the end.
  using Produce = std::function<absl::StatusOr<bool>(Item* item)>;

  Prefetch(Produce produce, size_t depth)
      : produce_(std::move(produce)),
        depth_(depth),
        thread_([this](std::stop_token stop) { Run(stop); }) {}

  absl::StatusOr<bool> Next(Item* item) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty() || done_; });
    if (ready_.empty()) {
      if (!status_.ok()) return status_;
      return false;
    }
    *item = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return true;
  }

  // What Next() returns if that is known without waiting: the item, valid until then, or null at
  // the end. None: Next() would wait, or returns an error.
  std::optional<const Item*> Peek() {
    std::lock_guard lock(mutex_);
    if (!ready_.empty()) return &ready_.front();
    if (done_ && status_.ok()) return nullptr;
    return std::nullopt;
  }

  void Recycle(Item item) {
    std::lock_guard lock(mutex_);
    free_.push_back(std::move(item));
  }

 private:
  void Run(std::stop_token stop) {
    while (!stop.stop_requested()) {
      Item item;
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [&] { return ready_.size() < depth_; })) return;
        if (!free_.empty()) {
          item = std::move(free_.back());
          free_.pop_back();
        }
      }
      absl::StatusOr<bool> more = produce_(&item);
      {
        std::lock_guard lock(mutex_);
        if (more.ok() && *more) {
          ready_.push_back(std::move(item));
        } else {
          done_ = true;
          if (!more.ok()) status_ = more.status();
        }
      }
      changed_.notify_all();
      if (!more.ok() || !*more) return;
    }
  }

  const Produce produce_;
  const size_t depth_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Item> ready_;
  std::deque<Item> free_;
  bool done_ = false;
  absl::Status status_;
  std::jthread thread_;  // last member: starts after all others exist, ends first
};

}  // namespace muster::data
