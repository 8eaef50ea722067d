// RunConfig: how a run behaves, under tf.estimator.RunConfig's names and defaults. Plain data:
// Validate checks it, and TF_CONFIG gives the place in a cluster (train/cluster/tf_config.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/engine.h"

namespace muster::train {

struct RunConfig {
  std::string model_dir = {};
  uint64_t seed = 1;  // tf_random_seed
  int threads = 1;
  // As tf.distribute.MirroredStrategy: each thread is a replica, with its own sub-batch and its own
  // statistics of BatchNorm. The input's batch is that of all threads together.
  bool threads_are_replicas = false;
  // bf16 needs AMX: Estimator::Create fails without it.
  engine::Precision precision = engine::Precision::kFloat32;            // of training
  engine::Precision inference_precision = engine::Precision::kFloat32;  // of evaluate and predict
  // TensorFlow's folder, for exported Keras models; "": see engine/tensorflow/find_tensorflow.h.
  std::string tensorflow = {};
  // Checkpoints are saved by steps or by time, not both; save_checkpoints_secs is 600 if neither is
  // given. If the given one is 0: only at the start and the end.
  std::optional<int64_t> save_checkpoints_steps = {};
  std::optional<double> save_checkpoints_secs = {};
  int keep_checkpoint_max = 5;  // 0: all
  double keep_checkpoint_every_n_hours = 10000;
  int64_t save_summary_steps = 100;    // 0: no summaries
  int64_t histogram_steps = 1000;      // of weights and activations; 0: none
  int64_t log_step_count_steps = 100;  // global_step/sec
  double session_creation_timeout_secs = 7200;
  bool nan_loss_is_failure = true;  // else a NaN loss ends the training without a failure

  // The place in a cluster, from TF_CONFIG. The defaults are those of a single process.
  std::map<std::string, std::vector<std::string>> cluster = {};  // job -> its tasks' addresses
  std::string chief_address = {};  // "HOST:PORT" of its chief or master; the evaluator has it too
  std::string task_type = "worker";
  int task_id = 0;
  bool is_chief = true;
  std::string master = {};  // "grpc://HOST:PORT"; "" for one process
  std::string evaluation_master = {};
  int num_ps_replicas = 0;
  int num_worker_replicas = 1;                  // workers and the chief
  std::optional<int> global_id_in_cluster = 0;  // the evaluator has none
  // The job and the incarnation, as the task's launcher knows them; "" and 0 if no launcher started
  // the task. Each start of a task has a greater incarnation than the starts before.
  std::string job = {};
  int64_t incarnation = 0;
  std::string step_file = {};  // where to report steps (train/loop/hooks/step_file.h); "": nowhere
  std::string service = {};    // TF_CONFIG's "service", a JSON object; "" for none

  int64_t checkpoint_steps() const { return save_checkpoints_steps.value_or(0); }
  double checkpoint_secs() const {
    return save_checkpoints_secs.value_or(save_checkpoints_steps.has_value() ? 0 : 600);
  }
};

// INVALID_ARGUMENT with tf.estimator's words for a value that tf.estimator refuses.
absl::Status Validate(const RunConfig& config);

}  // namespace muster::train
