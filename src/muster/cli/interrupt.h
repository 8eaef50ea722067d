// SIGINT and SIGTERM as a request to stop: the first asks, a second one ends the process at once.
#pragma once

#include <atomic>

namespace muster::cli {

// Installs the handlers for its lifetime; one at a time.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  static const std::atomic<bool>& requested();
};

}  // namespace muster::cli
