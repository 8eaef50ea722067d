// RMSProp (Hinton, lecture 6e of "Neural Networks for Machine Learning", 2012) by Keras 2's legacy
// RMSprop, plain or centered.
//
// Without momentum: w -= lr g / (sqrt(d) + epsilon); in a table the slots of every row decay at
// every step (if lazy, those of touched rows only), and touched rows move. With momentum it follows
// TensorFlow's ApplyRMSProp and SparseApplyRMSProp, which have epsilon under the root and change
// touched rows only. Centered: d is at least 0; rounding can make it negative, for which TensorFlow
// gives NaN. Slots: "rms"; with momentum "momentum"; centered "mg".
//
// By Keras 3's rule: epsilon is always under the root. With momentum every row moves; without it
// the slots of every row decay and touched rows move. Centered: the mean of squares less the square
// of the mean is at least 0 before epsilon is added; an id that occurs often in a batch makes it
// negative, for which Keras gives NaN. Slots: "velocity"; with momentum "momentum"; centered
// "average_gradient".
#pragma once

#include "muster/optim/optimizer_kind.h"

namespace muster::optim {

extern const OptimizerKind kRmsPropKind;

}  // namespace muster::optim
