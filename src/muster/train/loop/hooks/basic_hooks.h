// The small hooks of tf.estimator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "muster/train/loop/hook.h"

namespace muster::train {

// Requests a stop when the global step has reached `last_step`.
std::unique_ptr<Hook> NewStopAtStep(int64_t last_step);

// On a loss that is not finite (its gradients were not applied), fails with FAILED_PRECONDITION
// "loss is NaN at step N: ..." or, with `fail` false, requests a stop with that text as the reason.
std::unique_ptr<Hook> NewNanTensor(bool fail = true);

// Prints the note "step N: loss = L" (the mean since the last line) and the seconds it took.
struct LoggingTensorOptions {
  int64_t steps = 0;    // interval in steps; 0: not by steps
  double secs = 0;      // interval in seconds; 0: not by time
  bool at_end = false;  // also at the end
};
std::unique_ptr<Hook> NewLoggingTensor(const LoggingTensorOptions& options);

// For a worker that must start late: before the first step, waits until the global step that
// `read_step` returns has reached `wait_until`. Calls `pause` between reads; requests a stop when
// `pause` returns false. DEADLINE_EXCEEDED after `limit_secs` of the session's clock.
struct GlobalStepWaiterOptions {
  int64_t wait_until = 0;
  std::function<absl::StatusOr<int64_t>()> read_step;
  std::function<bool()> pause;
  double limit_secs = 7200;
};
std::unique_ptr<Hook> NewGlobalStepWaiter(GlobalStepWaiterOptions options);

// Calls `run` at the end: after the last checkpoint if the hook comes after the CheckpointSaver, as
// every user's hook does.
std::unique_ptr<Hook> NewFinalOps(std::function<absl::Status(Session&)> run);

}  // namespace muster::train
