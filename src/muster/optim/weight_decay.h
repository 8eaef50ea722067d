// Decoupled weight decay (Loshchilov, Hutter, ICLR 2019) by the rule of Keras's optimizers since
// TensorFlow 2.11 (AdamW, and `weight_decay` of the others): before each update w -= w *
// weight_decay * rate, with the schedule's rate of the step. The gradient belongs to the weights
// before the decay.
//
// Keras decays every row of a table at every step. So does this optimizer, which reads and writes
// the whole table in each step; with `lazy` it decays only the rows that a step touches, in that
// step.
#pragma once

#include <memory>

#include "muster/optim/optimizer.h"

namespace muster::optim {

// Decays weights as `spec` says before each update by `inner`.
std::unique_ptr<Optimizer> NewWeightDecay(const OptimizerSpec& spec,
                                          std::unique_ptr<Optimizer> inner);

}  // namespace muster::optim
