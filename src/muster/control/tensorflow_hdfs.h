// hdfs:// for the programs of TensorFlow that Muster starts (files/tensorflow/sitecustomize.py).
#pragma once

#include <string>
#include <vector>

namespace muster::control {

// The folder tensorflow-hdfs of this installation: beside this program, or in lib/muster, as the
// Debian package and the archive have it. "" if it is not installed.
std::string FindTensorFlowHdfs();

// Puts `folder` in front of PYTHONPATH, and the path of the library into MUSTER_TENSORFLOW_HDFS,
// unless that variable is "off", or `folder` is "".
void AddTensorFlowHdfs(const std::string& folder, std::vector<std::string>* environment);

}  // namespace muster::control
