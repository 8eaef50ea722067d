// FTRL-proximal (McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013) by the
// rule of TensorFlow's ApplyFtrlV2. Slots: "accumulator", "linear".
#pragma once

#include <memory>

#include "muster/optim/optimizer.h"

namespace muster::optim {

// `spec` is in its range.
std::unique_ptr<Optimizer> NewFtrl(const OptimizerSpec& spec);

}  // namespace muster::optim
