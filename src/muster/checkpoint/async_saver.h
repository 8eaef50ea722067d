// AsyncSaver: saves without holding up training. A separate thread writes the tensors as they were
// when the save started, while training changes them (frozen_tensors.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/checkpoint/frozen_tensors.h"
#include "muster/checkpoint/saver.h"

namespace muster::checkpoint {

// One owner thread. At most one save is in flight. The destructor waits for it and ignores its
// failure: call Wait() first.
class AsyncSaver {
 public:
  // `files` and `clock` must outlive this object.
  AsyncSaver(io::FileSystem& files, const Clock& clock, std::string folder, SaverOptions options);

  // The caller must announce each change of the tensors: frozen().BeforeAll and BeforeRows.
  FrozenTensors& frozen() { return frozen_; }

  // Starts to save the present values of `tensors` (as Saver::Save does). Their memory must stay
  // until the save has ended, and frozen() must be told of every change. Waits for a save in
  // flight; if that save failed, returns its failure and starts nothing.
  absl::Status Start(int64_t step, std::span<const Tensor> tensors, Strings strings,
                     RowFiles rows = {});

  // Waits for a save in flight, then saves on the calling thread, which has nothing else to do.
  // Returns the prefix.
  absl::StatusOr<std::string> SaveNow(int64_t step, std::span<const Tensor> tensors,
                                      const Strings& strings, const RowFiles& rows = {});

  // Whether a save is in flight, so that a Start() now would wait. False after a save ended or
  // failed.
  bool busy() const { return writer_.joinable() && !done_.load(std::memory_order_acquire); }

  // The failure of a save that has ended since the last call of any function here; cheap enough for
  // every step.
  absl::Status Check() { return busy() ? absl::OkStatus() : Wait(); }

  // Waits for a save in flight and returns its failure, once.
  absl::Status Wait();

  // The prefix of the newest complete checkpoint that this object wrote; "" before the first.
  const std::string& prefix() const { return prefix_; }

 private:
  const Clock& clock_;
  Saver saver_;
  FrozenTensors frozen_;
  std::string prefix_;
  std::atomic<bool> done_{false};
  absl::StatusOr<std::string> result_;  // the writer's until it is joined
  std::jthread writer_;
};

}  // namespace muster::checkpoint
