// Adagrad (Duchi, Hazan, Singer, JMLR 12, 2011) by the rule of TensorFlow's ApplyAdagradV2, or by
// that of Keras 3, which has epsilon under the root. Slot: "accumulator".
#pragma once

#include "muster/optim/optimizer_kind.h"

namespace muster::optim {

extern const OptimizerKind kAdagradKind;

}  // namespace muster::optim
