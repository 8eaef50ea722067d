// A program that is started again when it dies, a bounded number of times.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/process/child.h"

namespace muster::process {

struct KeepAliveOptions {
  // More deaths than this within the window are not by chance: it is given up.
  int max_restarts = 5;
  double window_seconds = 600;
  // The first restart in the window is at once; before the second one this pause, which doubles
  // with each. All pauses of a window together are 15 times as long.
  double pause_seconds = 0.5;
  // Readable when it is to end: it gets SIGTERM, is waited for, and is not started again. -1:
  // never.
  int stop_fd = -1;
  std::function<void(const std::string&)> say = {};  // told of each death; empty: nobody
};

using Starter = std::function<absl::StatusOr<std::unique_ptr<Child>>()>;

// Waits until `child` has ended for good; where it died (a signal, an exit code that is not 0) it
// is started again by `start`, whose errors count as deaths. OK: it ended with exit code 0, or
// because of stop_fd. ABORTED: somebody ended it with SIGTERM or SIGINT, which is no death, or it
// is given up; how it ended is in the message. Blocks.
absl::Status KeepAlive(std::unique_ptr<Child> child, const Starter& start, const Clock& clock,
                       const KeepAliveOptions& options);

}  // namespace muster::process
