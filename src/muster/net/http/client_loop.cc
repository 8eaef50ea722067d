#include "muster/net/http/client_loop.h"

#include <boost/asio/post.hpp>

namespace muster::net::internal {

std::chrono::nanoseconds ToDuration(double seconds) {
  constexpr double kLeast = 0.001, kYear = 365.0 * 86'400;
  if (seconds > kYear) return std::chrono::nanoseconds::max();
  const std::chrono::duration<double> bounded(seconds > kLeast ? seconds : kLeast);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(bounded);
}

SteadyTime After(double seconds) {
  const std::chrono::nanoseconds duration = ToDuration(seconds);
  const SteadyTime now = std::chrono::steady_clock::now();
  return duration < SteadyTime::max() - now ? now + duration : SteadyTime::max();
}

absl::Status ClientLoop::RunUntil(const bool& done, SteadyTime deadline) {
  while (!done) {
    if (cancelled_) return absl::CancelledError("cancelled");
    if (std::chrono::steady_clock::now() >= deadline) {
      return absl::DeadlineExceededError("no answer in time");
    }
    context_.restart();  // it stops when it has nothing to wait for
    context_.run_one_until(deadline);
  }
  return absl::OkStatus();
}

void ClientLoop::RunHandlers() {
  context_.restart();
  context_.poll();
}

void ClientLoop::Cancel() {
  cancelled_ = true;
  boost::asio::post(context_, [] {});  // wakes it
}

}  // namespace muster::net::internal
