// Adam (Kingma, Ba, ICLR 2015, the form before section 2.1). By Keras 2's rule, dense variables
// follow TensorFlow's ApplyAdam; in a table every row is updated, as a dense variable would be, or,
// if lazy, touched rows only; the slots are "m" and "v". By Keras 3's rule the slots are
// "momentum" and "velocity".
#pragma once

#include "muster/optim/optimizer_kind.h"

namespace muster::optim {

extern const OptimizerKind kAdamKind;

}  // namespace muster::optim
