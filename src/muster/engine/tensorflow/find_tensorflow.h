// Where TensorFlow's library lies on this machine.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"

namespace muster::engine::tensorflow {

// The folder with libtensorflow_cc.so.2, which the Python package `tensorflow` (2.16 or newer)
// carries: from `named` (--tensorflow), else MUSTER_TENSORFLOW of `environment`, else the package
// that python3 on its PATH would import, which is asked for the folder alone. `named` and the
// variable may be that folder, one that has it as site-packages or a virtual environment does, or
// a Python interpreter. NOT_FOUND says where was looked and what to do.
absl::StatusOr<std::string> FindTensorFlow(const std::string& named,
                                           const std::vector<std::string>& environment);

}  // namespace muster::engine::tensorflow
