// Learning rates with which a first training usually learns, for advice to runs that do not learn.
#pragma once

#include <string>
#include <vector>

#include "muster/model/spec/model_spec.h"

namespace muster::train {

// One line for each part of the model whose learning rate is less than half of the usual one of its
// optimizer, as tf.estimator's defaults for a wide_deep model are: "optimizer: {adagrad:
// {learning_rate: 0.05}} in model.dnn (it is 0.001)".
std::vector<std::string> DescribeSlowParts(const model::ModelSpec& model);

}  // namespace muster::train
