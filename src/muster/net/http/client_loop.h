// Runs a client's asynchronous operations on the thread that waits for them, until a deadline.
// Included by .cc files of this layer only: Asio takes seconds to compile.
#pragma once

#include <atomic>
#include <chrono>

#include <boost/asio/io_context.hpp>

#include "muster/base/status.h"

namespace muster::net::internal {

using SteadyTime = std::chrono::steady_clock::time_point;

// Converts seconds: to at least a millisecond; more than a year, also infinity, becomes the longest
// possible duration.
std::chrono::nanoseconds ToDuration(double seconds);
// The time that many seconds from now.
SteadyTime After(double seconds);

// One owner thread, except for Cancel(). The code that starts an operation must end it (close its
// socket) and call RunHandlers() before it frees what the operation's handler writes to.
class ClientLoop {
 public:
  boost::asio::io_context& context() { return context_; }

  // Runs until a handler has set `done`. DEADLINE_EXCEEDED "no answer in time", or CANCELLED.
  absl::Status RunUntil(const bool& done, SteadyTime deadline);
  // Runs the handlers of operations that have ended, without waiting for others.
  void RunHandlers();

  // Ends RunUntil(), now and until Renew(). Any thread.
  void Cancel();
  // Undoes Cancel(), for the next user of the loop.
  void Renew() { cancelled_ = false; }

 private:
  boost::asio::io_context context_{1};  // one thread runs it
  std::atomic<bool> cancelled_ = false;
};

}  // namespace muster::net::internal
