// Trials of `muster tune --on spark`: each is a training in slots of Spark's executors. Only a
// driver has these, the Python program of a SparkSession. Its call muster.spark.tune() starts
// `muster tune`, and says which program hands a trial's command to it
// (python/muster/spark/trial_runner.py).
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "muster/base/status.h"
#include "muster/cli/train/tune_cluster.h"
#include "muster/io/file_system.h"

namespace muster::cli {

// Lets --on be `spark`, and adds the hidden flag by which the driver says who it is.
void AddSparkTrialFlags(CLI::App& verb, ClusterTrialFlags* flags);
// Wrong use of them, and of flags of another place, throws.
void CheckSparkTrialFlags(const CLI::App& verb, const ClusterTrialFlags& flags);

struct SparkTraining {
  std::vector<std::string> words = {};  // after `muster train`
  std::string model_dir = {};
};

// Returns the words of a trial's command. Where an earlier driver was killed, its tasks of the
// trial end within their lease: the call waits for that, or until `stop` is set.
absl::StatusOr<std::vector<std::string>> MakeSparkCommand(io::FileSystem& files,
                                                          const ClusterTrialFlags& flags,
                                                          const std::string& program,
                                                          SparkTraining training,
                                                          const std::atomic<bool>& stop);

}  // namespace muster::cli
