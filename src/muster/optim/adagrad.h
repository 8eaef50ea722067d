// Adagrad (Duchi, Hazan, Singer, JMLR 12, 2011) by the rule of TensorFlow's ApplyAdagradV2, or by
// Keras 3's, which has epsilon in the root. Slot: "accumulator".
#pragma once

#include <memory>

#include "muster/optim/optimizer.h"

namespace muster::optim {

// `spec` is in its range.
std::unique_ptr<Optimizer> NewAdagrad(const OptimizerSpec& spec);

}  // namespace muster::optim
