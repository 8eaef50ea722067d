// Finds TensorFlow's library on this machine.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"

namespace muster::engine::tensorflow {

// Returns the folder with libtensorflow_cc.so.2, which is part of the Python package `tensorflow`
// (2.16 or newer). Looks in `named` (--tensorflow), else in MUSTER_TENSORFLOW of `environment`,
// else in the package that python3 on its PATH would import (python3 is asked for the folder only).
// `named` and the variable may be that folder, a folder that contains it as site-packages or a
// virtual environment does, or a Python interpreter. NOT_FOUND says where the search looked and
// what to do.
absl::StatusOr<std::string> FindTensorFlow(const std::string& named,
                                           const std::vector<std::string>& environment);

}  // namespace muster::engine::tensorflow
