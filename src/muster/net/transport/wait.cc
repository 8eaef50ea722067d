#include "muster/net/transport/wait.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "muster/net/transport/link_watch.h"

namespace muster::net::transport {
namespace {

constexpr size_t kMaxStreams = 4;
constexpr double kLookSeconds = 1;  // between two looks at the links of who waits
// So often the spinner asks again without looking at the clock: about 3 us, in which a peer that is
// at work answers.
constexpr int kEagerPauses = 64;

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

struct Polled {
  int ready = 0;
  int error = 0;
};

Polled Poll(std::span<pollfd> polled, process::Deadline deadline) {
  const int ready = poll(polled.data(), polled.size(), deadline.PollMillis());
  return {.ready = ready, .error = ready < 0 ? errno : 0};
}

absl::Status CheckLinks(std::span<const pollfd> polled) {
  for (const pollfd& each : polled) MUSTER_RETURN_IF_ERROR(CheckLink(each.fd));
  return absl::OkStatus();
}

absl::Status Judge(Polled polled, process::Deadline deadline, const Interrupt& interrupt) {
  if (interrupt.is_set()) return interrupt.status();
  if (polled.ready > 0) return absl::OkStatus();
  if (polled.ready < 0 && polled.error != EINTR && polled.error != EAGAIN) {
    return ErrnoStatus(polled.error, "poll");
  }
  if (deadline.expired()) return absl::DeadlineExceededError("the deadline passed");
  return absl::OkStatus();
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
  Polled result = {.ready = ready_now ? 1 : 0};
  absl::Status links;
  while (!ready_now) {
    const double rest = deadline.PollMillis() * 1e-3;
    result = Poll({polled.data(), count}, process::Deadline::After(std::min(rest, kLookSeconds)));
    if (result.ready != 0) break;
    links = CheckLinks({polled.data() + 1, count - 1});
    if (!links.ok() || deadline.expired()) break;
  }
  for (size_t i = 0; i < armed; ++i) awaited[i].stream->Disarm();
  if (!links.ok() && !interrupt.is_set()) return links;
  return Judge(result, deadline, interrupt);
}

absl::Status WaitForDescriptor(int fd, short events, process::Deadline deadline,
                               const Interrupt& interrupt) {
  std::array<pollfd, 2> polled = {pollfd{.fd = interrupt.fd(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = fd, .events = events, .revents = 0}};
  return Judge(Poll(polled, deadline), deadline, interrupt);
}

bool Spin::Again() {
  if (budget_ == Clock::duration::zero()) return false;
  if (pauses_ < kEagerPauses) {
    ++pauses_;
    Pause();
    return true;
  }
  const Clock::time_point now = Clock::now();
  if (pauses_ == kEagerPauses) {
    ++pauses_;
    since_ = now;
  }
  if (now - since_ >= budget_) return false;
  sched_yield();
  return true;
}

}  // namespace muster::net::transport
