// FTRL-proximal (McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013) by the
// rule of TensorFlow's ApplyFtrlV2. Slots: "accumulator", "linear".
//
// Keras 3's rule is the same for a single row, but updates every row of a table at every step: the
// weights become the value that the slots give, which is 0 at first.
#pragma once

#include "muster/optim/optimizer_kind.h"

namespace muster::optim {

extern const OptimizerKind kFtrlKind;

}  // namespace muster::optim
