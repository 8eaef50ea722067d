#include "muster/base/clock.h"

#include <chrono>

namespace muster {

double SystemClock::WallSeconds() const {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

int64_t SystemClock::MonotonicNanos() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void FakeClock::Advance(double seconds) {
  wall_seconds_ += seconds;
  nanos_ += static_cast<int64_t>(seconds * 1e9);
}

}  // namespace muster
