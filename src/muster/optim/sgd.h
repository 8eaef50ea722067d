// Stochastic gradient descent, with momentum (Polyak 1964) or Nesterov's (Sutskever et al., ICML
// 2013), by Keras 2's SGD: TensorFlow's ApplyGradientDescent and ApplyKerasMomentum. Tables:
// touched rows only, as SparseApplyKerasMomentum. Slot, with momentum: "momentum".
//
// Keras 3's rule is the same except for tables with momentum: all their rows move at every step.
#pragma once

#include "muster/optim/optimizer_kind.h"

namespace muster::optim {

extern const OptimizerKind kSgdKind;

}  // namespace muster::optim
