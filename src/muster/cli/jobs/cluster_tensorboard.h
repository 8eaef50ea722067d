// `muster tensorboard` of a job in a cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/cli/jobs/where_flags.h"

namespace muster::cli {

struct ClusterTensorBoardFlags {
  std::string model_dir = {}, image = {};
  int port = 0;
  std::vector<std::string> arguments = {};
};

// Runs TensorBoard in the cluster, prints the address on this machine at which a browser finds it,
// and removes it again at Ctrl-C. Ends when the job is removed.
absl::Status ShowInCluster(const ClusterJob& job, const ClusterTensorBoardFlags& flags);

}  // namespace muster::cli
