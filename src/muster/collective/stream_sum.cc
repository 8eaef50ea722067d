#include "muster/collective/stream_sum.h"

#include <algorithm>

#include "muster/collective/collectives.h"

namespace muster::collective {

void StreamSum::Begin(Group& group, std::span<float> values, bool early) {
  const std::lock_guard lock(mutex_);
  values_ = values;
  bucket_ = RingTurnFloats(group.size());
  ready_ = reduced_ = 0;
  status_ = group.status();
  group_ = &group;
  early_ = early && group.size() > 1 && values.size() > bucket_;
  if (early_ && !thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }
}

void StreamSum::Ready(size_t count) {
  {
    const std::lock_guard lock(mutex_);
    ready_ = count;
    if (!HasBucket()) return;
  }
  changed_.notify_all();
}

void StreamSum::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return HasBucket(); })) {
    busy_ = true;
    ReduceNext(lock, bucket_);
    busy_ = false;
    changed_.notify_all();
  }
}

// Sums the next `count` values. The lock is released meanwhile, since no other thread is in a
// collective.
void StreamSum::ReduceNext(std::unique_lock<std::mutex>& lock, size_t count) {
  const std::span<float> values = values_.subspan(reduced_, count);
  lock.unlock();
  const absl::Status status = AllReduce(*group_, values);
  lock.lock();
  status_ = status;
  reduced_ += count;
}

absl::Status StreamSum::Finish() {
  std::unique_lock lock(mutex_);
  Stop(lock);
  while (status_.ok() && reduced_ < values_.size()) {
    ReduceNext(lock, std::min(bucket_, values_.size() - reduced_));
  }
  return status_;
}

void StreamSum::Abandon() {
  std::unique_lock lock(mutex_);
  Stop(lock);
}

// Returns when the thread has finished its present bucket. The thread begins no other one.
void StreamSum::Stop(std::unique_lock<std::mutex>& lock) {
  early_ = false;
  changed_.wait(lock, [this] { return !busy_; });
}

size_t StreamSum::reduced() const {
  const std::lock_guard lock(mutex_);
  return reduced_;
}

}  // namespace muster::collective
