// Wakes every waiting call of this layer from another thread, with the reason.
#pragma once

#include <atomic>
#include <memory>

#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/process/descriptor.h"

namespace muster::net::transport {

// Set once and never reset: to continue afterwards, make a new one. Thread-safe.
class Interrupt {
 public:
  // RESOURCE_EXHAUSTED if no descriptor is left.
  static absl::StatusOr<std::unique_ptr<Interrupt>> Create();

  // Every waiting call, and every later one, returns `why` (not OK). The first reason stays.
  void Set(const absl::Status& why);

  bool is_set() const { return set_.load(std::memory_order_acquire); }
  // OK until it is set.
  absl::Status status() const;

  // Says that this will be set, unless what is under way ends soon: calls go on, and their callers
  // ask for planned() before they begin something new. `why`: not OK. The first reason stays.
  void Plan(const absl::Status& why);
  bool is_planned() const { return planned_.load(std::memory_order_acquire); }
  // OK until Plan was called.
  absl::Status planned() const;
  // Told by calls whose bytes move.
  void NoteMove() const {
    if (is_planned()) moved_.store(true, std::memory_order_relaxed);
  }
  // Whether bytes have moved since the last call, after Plan.
  bool ConsumeMoves() { return moved_.exchange(false, std::memory_order_relaxed); }
  // Becomes readable once it is set.
  int fd() const { return event_.get(); }

 private:
  explicit Interrupt(process::Descriptor event) : event_(std::move(event)) {}

  const process::Descriptor event_;
  std::atomic<bool> set_ = false, planned_ = false;
  mutable std::atomic<bool> moved_ = false;
  mutable Mutex mutex_;
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
  absl::Status why_planned_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::net::transport
