#include "muster/net/transport/wait.h"

#include <poll.h>
#include <sched.h>

#include <array>
#include <cerrno>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace muster::net::transport {
namespace {

constexpr size_t kMaxStreams = 4;
constexpr int kPauses = 16;
constexpr auto kBeforeYield = std::chrono::microseconds(2);

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

absl::Status WaitFor(std::span<const Awaited> awaited, process::Deadline deadline,
                     const Interrupt& interrupt) {
  std::array<pollfd, kMaxStreams + 1> polled;
  polled[0] = {.fd = interrupt.fd(), .events = POLLIN, .revents = 0};
  size_t count = 1, armed = 0;
  bool ready_now = false;
  for (; armed < awaited.size() && !ready_now; ++armed) {
    const Awaited& one = awaited[armed];
    const PollWish wish = one.stream->Arm(one.read, one.write);
    ready_now = wish.events == 0;
    polled[count++] = {.fd = wish.fd, .events = wish.events, .revents = 0};
  }
  int ready = 1;
  if (!ready_now) ready = poll(polled.data(), count, deadline.PollMillis());
  const int error = errno;
  for (size_t i = 0; i < armed; ++i) awaited[i].stream->Disarm();
  if (interrupt.is_set()) return interrupt.status();
  if (ready > 0) return absl::OkStatus();
  if (ready < 0 && error != EINTR && error != EAGAIN) return ErrnoStatus(error, "poll");
  if (deadline.expired()) return absl::DeadlineExceededError("the deadline passed");
  return absl::OkStatus();
}

bool Spin::Again() {
  if (budget_ == Clock::duration::zero()) return false;
  const Clock::time_point now = Clock::now();
  if (!running_) {
    running_ = true;
    since_ = now;
  }
  if (now - since_ >= budget_) return false;
  if (now - since_ >= kBeforeYield) {
    sched_yield();
  } else {
    for (int i = 0; i < kPauses; ++i) Pause();
  }
  return true;
}

}  // namespace muster::net::transport
