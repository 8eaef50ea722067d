// FTRL-proximal (McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013) by the
// rule of TensorFlow's ApplyFtrlV2. Slots: "accumulator", "linear".
//
// By Keras 3's rule, which is the same for a row, every row of a table moves at every step: to what
// its slots say, which is 0 at first.
#pragma once

#include <memory>

#include "muster/optim/optimizer.h"

namespace muster::optim {

// `spec` is in its range.
std::unique_ptr<Optimizer> NewFtrl(const OptimizerSpec& spec);

}  // namespace muster::optim
