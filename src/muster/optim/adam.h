// Adam (Kingma, Ba, ICLR 2015, the form before section 2.1). By Keras 2's rule, dense variables
// follow TensorFlow's ApplyAdam; tables are dense-equivalent or, when lazy, update touched rows
// only; slots "m", "v". By Keras 3's rule the slots are "momentum", "velocity".
#pragma once

#include "muster/optim/optimizer_kind.h"

namespace muster::optim {

extern const OptimizerKind kAdamKind;

}  // namespace muster::optim
