// The small hooks of tf.estimator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "muster/train/hook.h"

namespace muster::train {

// Asks to stop when the global step has reached `last_step`.
std::unique_ptr<Hook> NewStopAtStep(int64_t last_step);

// A loss that is not finite (its gradients were not applied) fails with FAILED_PRECONDITION
// "loss is NaN at step N: ..." or, with `fail` false, asks to stop with that text as the reason.
std::unique_ptr<Hook> NewNanTensor(bool fail = true);

// Notes "step N: loss = L" (the mean since the last line) and the seconds it took.
struct LoggingTensorOptions {
  int64_t steps = 0;  // every so many steps; 0: not by steps
  double secs = 0;    // behind the first step that ends so long after the last line; 0: not by time
  bool at_end = false;  // at the end too
};
std::unique_ptr<Hook> NewLoggingTensor(const LoggingTensorOptions& options);

// Before the first step, waits until the global step that `read_step` gives has reached
// `wait_until`: a worker that is to start late. Calls `pause` between looks; asks to stop when
// `pause` returns false. DEADLINE_EXCEEDED after `limit_secs` of the session's clock.
struct GlobalStepWaiterOptions {
  int64_t wait_until = 0;
  std::function<absl::StatusOr<int64_t>()> read_step;
  std::function<bool()> pause;
  double limit_secs = 7200;
};
std::unique_ptr<Hook> NewGlobalStepWaiter(GlobalStepWaiterOptions options);

// Calls `run` at the end: after the last checkpoint when it comes behind the CheckpointSaver, as
// every hook of a user does.
std::unique_ptr<Hook> NewFinalOps(std::function<absl::Status(Session&)> run);

}  // namespace muster::train
