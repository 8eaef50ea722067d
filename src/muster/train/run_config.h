// RunConfig: how a run behaves, under tf.estimator.RunConfig's names and defaults.
#pragma once

#include <cstdint>
#include <string>

namespace muster::train {

struct RunConfig {
  std::string model_dir;
  uint64_t seed = 1;
  int threads = 1;
  int64_t save_checkpoints_steps = 0;  // 0: by time only
  double save_checkpoints_secs = 600;
  int keep_checkpoint_max = 5;
  int64_t save_summary_steps = 100;
};

}  // namespace muster::train
