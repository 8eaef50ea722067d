// StreamSum: the all-reduce of values that are computed one after the other, as a backward pass
// computes its gradients: the first values are summed while later ones are still being computed.
//
// It follows Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training"
// (VLDB 2020), section 3.2.3: values are summed in buckets, in the same order on all ranks.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <thread>

#include "muster/collective/group.h"

namespace muster::collective {

// One owner thread. If sums begin early, the owner must not use the group from Begin until Finish
// or Abandon has returned.
class StreamSum {
 public:
  // Begins to sum `values` over all ranks, in place; no value is ready yet. `early`: this object's
  // own thread sums buckets of values as soon as they are ready; else Finish sums all of them. The
  // messages between the ranks and every bit of the sums are the same in both cases, so that each
  // rank may choose.
  void Begin(Group& group, std::span<float> values, bool early);
  // Reports that the first `count` values are ready: the caller must not change them any more, nor
  // read them before Finish returns.
  void Ready(size_t count);
  // Reports that all values are ready. Returns when all of them are summed, or with the group's
  // error.
  absl::Status Finish();
  // Called instead of Finish by a rank that cannot continue: returns when the group may be used
  // again. The other ranks wait for the missing values until they get its error (Group::Fail).
  void Abandon();

  size_t reduced() const;  // how many values are summed already; any thread may call it

 private:
  void Run(const std::stop_token& stop);
  bool HasBucket() const { return early_ && status_.ok() && ready_ - reduced_ >= bucket_; }
  void ReduceNext(std::unique_lock<std::mutex>& lock, size_t count);
  void Stop(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  Group* group_ = nullptr;
  std::span<float> values_;
  size_t bucket_ = 0;  // values in a bucket: those of one turn of the ring
  size_t ready_ = 0, reduced_ = 0;
  bool early_ = false;  // the thread may begin a bucket
  bool busy_ = false;   // the thread is summing a bucket
  absl::Status status_;
  std::jthread thread_;
};

}  // namespace muster::collective
