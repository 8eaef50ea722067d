// SummarySaver: writes the progress of a training for TensorBoard, under tf.estimator's tags.
#pragma once

#include <cstdint>
#include <memory>

#include "muster/train/loop/hook.h"

namespace muster::train {

struct SummarySaverOptions {
  int64_t steps = 100;  // interval of scalars, which are also written at the end; 0: nothing at all
  int64_t histogram_steps = 1000;  // the same for histograms, also written at the start; 0: none
};

// Scalars:
//   loss                          mean over the examples since the last time
//   PART/learning_rate            of the optimizer that trains PART ("dnn", "linear")
//   LAYER/fraction_of_zero_values of a watched layer's output in the last step
//   bias                          of a linear model with one logit
// Together with the histograms, which cost more:
//   LAYER/activation              a watched layer's output in the last step (not at the start)
//   VARIABLE                      each variable's weights
//   fraction_of_zero_weights      scalar: of a linear model, without its bias
// All values of a dense variable are used, and every k-th row of a table of more than 65,536
// numbers.
std::unique_ptr<Hook> NewSummarySaver(const SummarySaverOptions& options);

}  // namespace muster::train
