// RunConfig: how a run behaves, under tf.estimator.RunConfig's names and defaults.
#pragma once

#include <cstdint>
#include <string>

#include "muster/engine/engine.h"

namespace muster::train {

struct RunConfig {
  std::string model_dir;
  uint64_t seed = 1;
  int threads = 1;
  // bf16 needs AMX: Estimator::Create fails without it.
  engine::Precision precision = engine::Precision::kFloat32;            // of training
  engine::Precision inference_precision = engine::Precision::kFloat32;  // of evaluate and predict
  int64_t save_checkpoints_steps = 0;                                   // 0: by time only
  double save_checkpoints_secs = 600;
  int keep_checkpoint_max = 5;
  int64_t save_summary_steps = 100;    // 0: no summaries
  int64_t log_step_count_steps = 100;  // global_step/sec
  bool nan_loss_is_failure = true;     // else such a loss ends the training without one
};

}  // namespace muster::train
