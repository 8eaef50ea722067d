// RMSProp (Hinton, lecture 6e of "Neural Networks for Machine Learning", 2012) by Keras 2's legacy
// RMSprop, plain or centered.
//
// Without momentum: w -= lr g / (sqrt(d) + epsilon); of a table the slots of every row decay at
// every step (or, lazy, those of touched rows), touched rows move. With momentum: TensorFlow's
// ApplyRMSProp and SparseApplyRMSProp, which have epsilon under the root and know touched rows
// only. Centered: d, which rounding can leave under 0 where TensorFlow then has no number, is at
// least 0. Slots: "rms"; with momentum "momentum"; centered "mg".
//
// Or by Keras 3's: epsilon is under the root in any case, and every row moves where there is
// momentum; without it the slots of every row decay, touched rows move. Centered: the mean of
// squares less the square of the mean is at least 0 before epsilon is added; an id that comes often
// in a batch makes it negative, where Keras has no number. Slots: "velocity"; with momentum
// "momentum"; centered "average_gradient".
#pragma once

#include <memory>

#include "muster/optim/optimizer.h"

namespace muster::optim {

// `spec` is in its range.
std::unique_ptr<Optimizer> NewRmsProp(const OptimizerSpec& spec);

}  // namespace muster::optim
