// Hooks that write TensorBoard events of a training into MODEL_DIR.
#pragma once

#include <memory>

#include "muster/train/hook.h"

namespace muster::train {

// `global_step/sec` and `examples/sec`, of the steps since the last time, every `steps` steps and
// at the end.
std::unique_ptr<Hook> NewStepCounter(int64_t steps);

// `loss`, the mean over the examples since the last time, every `steps` steps and at the end;
// steps 0: never.
std::unique_ptr<Hook> NewSummarySaver(int64_t steps);

}  // namespace muster::train
