// Adagrad (Duchi, Hazan, Singer, JMLR 12, 2011) by the rule of TensorFlow's ApplyAdagradV2, or by
// that of Keras 3, which has epsilon under the root. Slot: "accumulator".
#pragma once

#include <memory>

#include "muster/optim/optimizer.h"

namespace muster::optim {

// All values of `spec` are in range.
std::unique_ptr<Optimizer> NewAdagrad(const OptimizerSpec& spec);

}  // namespace muster::optim
