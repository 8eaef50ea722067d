// FTRL-proximal (McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013) by the
// rule of TensorFlow's ApplyFtrlV2. Slots: "accumulator", "linear".
//
// By Keras 3's rule, which is the same for a single row, every row of a table is updated at every
// step, to the value that its slots give, which is 0 at first.
#pragma once

#include "muster/optim/optimizer_kind.h"

namespace muster::optim {

extern const OptimizerKind kFtrlKind;

}  // namespace muster::optim
