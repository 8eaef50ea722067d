// What `muster train` and `muster worker` do once their flags are read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/cli/train/cache_flags.h"
#include "muster/cli/train/model_flags.h"
#include "muster/cli/train/train_flags.h"
#include "muster/engine/engine.h"
#include "muster/train/cluster_role.h"
#include "muster/train/loop/run_config.h"
#include "muster/train/run_training.h"

namespace muster::cli {

struct TrainFlags {
  std::string spec;
  std::vector<std::string> settings;  // settings that change the model file's values
  DataFlags data;
  EvaluationFlags eval;
  train::RunConfig run;
  int64_t epochs = 0;
  int64_t steps = 0;
  int64_t max_steps = 0;
  LoggingFlags logging;
  std::string warm_start;
  std::string continue_from;
  int64_t seed = -1;
  std::optional<engine::Precision> precision;
  std::string class_weights;
  CacheFlags cache;
  bool no_shuffle = false;
  bool drop_remainder = false;
  bool fresh_data = false;
  bool follow = false;
  double follow_seconds = 10;
  std::string follow_group = {};
  HookCallFlags calls;
  OutputFlags output;
  std::optional<train::StrategyKind> strategy;
  int64_t staleness = -1;
  int aggregate = 0;
  // For a job of several replicas.
  int workers = 0, ps = 0;
  ProtectionFlags protection;
  int stall_seconds = 0;  // --stall-timeout
  int min_workers = 0;    // this many continue without the others; 0: all are needed
  int replicas = 0;       // in this process
  int restarts = 3;
  double rendezvous_seconds = -1;  // 0: unlimited; < 0: not given
  std::string job;
  std::string hosts, ssh = "ssh";  // as in JobFlags
};

// INVALID_ARGUMENT if flags about several processes contradict each other.
absl::Status CheckTogether(const TrainFlags& flags);

// Makes what RunTraining needs, after all checks; sets flags.run. It must be called while an
// InterruptScope exists.
absl::StatusOr<train::TrainingRequest> PrepareTraining(TrainFlags& flags, io::FileSystem& files,
                                                       const Clock& clock);

// Reads the words after `muster train`, of a training in one process. INVALID_ARGUMENT for wrong
// use. The topics of Kafka are not fixed yet (kafka_ranges.h).
absl::Status ParseTrainFlags(const std::vector<std::string>& words, TrainFlags* flags);
// Sets the number of replicas: "4", or "2:4" for two to four. INVALID_ARGUMENT.
absl::Status ParseWorkers(const std::string& text, TrainFlags* flags);

// Runs this process's part of a training: all of it, or the task that TF_CONFIG names.
absl::Status RunTrain(TrainFlags& flags);

// Loads the model, and finds what in the flags does not fit it. The model's own errors, and those
// of training it with several tasks.
absl::StatusOr<model::ModelSpec> LoadCheckedModel(io::FileSystem& files, const TrainFlags& flags);

// Runs the same command for each replica, as a job on this machine. `arguments` are those of the
// command without the flags for the number of replicas.
absl::Status RunReplicas(const TrainFlags& flags, const std::vector<std::string>& arguments);

}  // namespace muster::cli
