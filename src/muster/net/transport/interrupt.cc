#include "muster/net/transport/interrupt.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

namespace muster::net::transport {

absl::StatusOr<std::unique_ptr<Interrupt>> Interrupt::Create() {
  process::Descriptor event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.valid()) return ErrnoStatus(errno, "make an interrupt: eventfd");
  return std::unique_ptr<Interrupt>(new Interrupt(std::move(event)));
}

void Interrupt::Set(const absl::Status& why) {
  {
    const MutexLock lock(&mutex_);
    if (!why_.ok()) return;
    why_ = why.ok() ? absl::AbortedError("interrupted") : why;
    set_.store(true, std::memory_order_release);
  }
  eventfd_write(event_.get(), 1);  // one is never too many for its counter
}

absl::Status Interrupt::status() const {
  if (!is_set()) return absl::OkStatus();
  const MutexLock lock(&mutex_);
  return why_;
}

void Interrupt::Plan(const absl::Status& why) {
  const MutexLock lock(&mutex_);
  if (!why_planned_.ok()) return;
  why_planned_ = why.ok() ? absl::AbortedError("interrupted") : why;
  planned_.store(true, std::memory_order_release);
}

absl::Status Interrupt::planned() const {
  if (!is_planned()) return absl::OkStatus();
  const MutexLock lock(&mutex_);
  return why_planned_;
}

}  // namespace muster::net::transport
