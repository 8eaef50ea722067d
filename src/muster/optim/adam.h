// Adam (Kingma, Ba, ICLR 2015, the form before section 2.1) by Keras 2's rule: dense by
// TensorFlow's ApplyAdam, tables dense-equivalent or, when lazy, touched rows only; slots "m", "v".
// Or by Keras 3's; slots "momentum", "velocity".
#pragma once

#include <memory>

#include "muster/optim/optimizer.h"

namespace muster::optim {

// `spec` is in its range.
std::unique_ptr<Optimizer> NewAdam(const OptimizerSpec& spec);

}  // namespace muster::optim
