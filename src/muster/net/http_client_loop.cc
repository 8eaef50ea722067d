#include "muster/net/http_client_loop.h"

#include <boost/asio/post.hpp>

namespace muster::net::internal {

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
