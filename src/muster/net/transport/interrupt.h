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
  // Becomes readable once it is set.
  int fd() const { return event_.get(); }

 private:
  explicit Interrupt(process::Descriptor event) : event_(std::move(event)) {}

  const process::Descriptor event_;
  std::atomic<bool> set_ = false;
  mutable Mutex mutex_;
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::net::transport
