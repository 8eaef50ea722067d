// RMSProp (Hinton, lecture 6e of "Neural Networks for Machine Learning", 2012) by Keras 2's legacy
// RMSprop, plain or centered.
//
// Without momentum: w -= lr g / (sqrt(d) + epsilon); of a table the slots of every row decay at
// every step (or, lazy, those of touched rows), touched rows move. With momentum: TensorFlow's
// ApplyRMSProp and SparseApplyRMSProp, which have epsilon under the root and know touched rows
// only. Centered: d, which rounding can leave under 0 where TensorFlow then has no number, is at
// least 0. Slots: "rms"; with momentum "momentum"; centered "mg".
#pragma once

#include <memory>

#include "muster/optim/optimizer.h"

namespace muster::optim {

// `spec` is in its range.
std::unique_ptr<Optimizer> NewRmsProp(const OptimizerSpec& spec);

}  // namespace muster::optim
