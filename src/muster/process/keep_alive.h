// Restarts a program when it fails, a bounded number of times.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/process/child.h"

namespace muster::process {

struct KeepAliveOptions {
  // After more failures than this within the window it is given up.
  int max_restarts = 5;
  double window_seconds = 600;
  // The first restart in the window is immediate; this pause precedes the second one and doubles
  // with each further one. All pauses of a window together are 15 times as long.
  double pause_seconds = 0.5;
  // When this becomes readable, the program gets SIGTERM, is waited for, and is not restarted. -1:
  // never.
  int stop_fd = -1;
  std::function<void(const std::string&)> say = {};  // called for each failure; may be empty
};

using Starter = std::function<absl::StatusOr<std::unique_ptr<Child>>()>;

// Waits until `child` has ended for good. When it fails (a signal, a nonzero exit code) `start`
// restarts it; errors of `start` count as failures. OK: it ended with exit code 0, or because of
// stop_fd. ABORTED: somebody ended it with SIGTERM or SIGINT, which does not count as a failure, or
// it was given up; the message says how it ended. Blocks.
absl::Status KeepAlive(std::unique_ptr<Child> child, const Starter& start, const Clock& clock,
                       const KeepAliveOptions& options);

}  // namespace muster::process
