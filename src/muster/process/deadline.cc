#include "muster/process/deadline.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

namespace muster::process {
namespace {

constexpr double kFarSeconds = 365.0 * 24 * 3600;
constexpr int64_t kMaxPollMillis = 3600 * 1000;

}  // namespace

Deadline Deadline::After(double seconds) {
  const double bounded = std::clamp(seconds, 0.0, kFarSeconds);
  return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(bounded)));
}

int Deadline::PollMillis() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, kMaxPollMillis));
}

bool PollReadable(const int* fds, int count, Deadline deadline) {
  std::vector<pollfd> polled(count);
  for (int i = 0; i < count; ++i) polled[i] = {.fd = fds[i], .events = POLLIN, .revents = 0};
  while (true) {
    const int ready = poll(polled.data(), polled.size(), deadline.PollMillis());
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR && errno != EAGAIN) return true;  // the caller's call will say
    if (deadline.expired()) return false;
  }
}

}  // namespace muster::process
