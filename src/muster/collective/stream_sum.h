// StreamSum: the all-reduce of values that come one after the other: the first are on their way
// around while the later ones are still being computed, as a backward pass gives its gradients.
//
// After Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training" (VLDB
// 2020), section 3.2.3: buckets, in an order that is the same on all ranks.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <thread>

#include "muster/collective/group.h"

namespace muster::collective {

// One owner thread. Where sums begin early it does not touch the group from Begin until Finish or
// Abandon has returned.
class StreamSum {
 public:
  // `values` are to be summed over all ranks, in place; none of them is there yet. `early`: by a
  // thread of this object's own, in buckets, as soon as they are; else all in Finish. What crosses
  // between the ranks, and every bit of the sums, is the same either way: each rank may choose.
  void Begin(Group& group, std::span<float> values, bool early);
  // The first `count` will not change any more, nor be read before Finish returns.
  void Ready(size_t count);
  // All are there. Returns when they are sums, or the group's error.
  absl::Status Finish();
  // Instead of Finish, by a rank that cannot go on: returns when the group may be used again. The
  // other ranks wait for what is missing until they are told (Group::Fail).
  void Abandon();

  size_t reduced() const;  // values that are sums already; any thread

 private:
  void Run(const std::stop_token& stop);
  bool HasBucket() const { return early_ && status_.ok() && ready_ - reduced_ >= bucket_; }
  void ReduceNext(std::unique_lock<std::mutex>& lock, size_t count);
  void Stop(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  Group* group_ = nullptr;
  std::span<float> values_;
  size_t bucket_ = 0;  // values: a turn of the ring
  size_t ready_ = 0, reduced_ = 0;
  bool early_ = false;  // the thread may begin a bucket
  bool busy_ = false;   // it is in one
  absl::Status status_;
  std::jthread thread_;
};

}  // namespace muster::collective
