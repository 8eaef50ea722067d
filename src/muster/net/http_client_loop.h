// Runs a client's asynchronous operations on the thread that waits for them, until a deadline.
// Included by .cc files of this layer only: Asio takes seconds to compile.
#pragma once

#include <atomic>
#include <chrono>

#include <boost/asio/io_context.hpp>

#include "muster/base/status.h"

namespace muster::net::internal {

using SteadyTime = std::chrono::steady_clock::time_point;

// One owner thread, Cancel() excepted. Whoever starts an operation ends it (closes its socket) and
// calls RunHandlers() before he frees what its handler writes to.
class ClientLoop {
 public:
  boost::asio::io_context& context() { return context_; }

  // Until a handler has set `done`. DEADLINE_EXCEEDED "no answer in time", or CANCELLED.
  absl::Status RunUntil(const bool& done, SteadyTime deadline);
  // Those of operations that have ended; waits for none.
  void RunHandlers();

  // Ends RunUntil(), now and later. Any thread.
  void Cancel();

 private:
  boost::asio::io_context context_{1};  // one thread runs it
  std::atomic<bool> cancelled_ = false;
};

}  // namespace muster::net::internal
