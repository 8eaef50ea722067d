// StepCounter: writes the speed of a training, for TensorBoard.
#pragma once

#include <memory>

#include "muster/train/loop/hook.h"

namespace muster::train {

// Writes `global_step/sec` and `examples/sec`, over the steps since the last time, every `steps`
// steps and at the end.
std::unique_ptr<Hook> NewStepCounter(int64_t steps);

}  // namespace muster::train
