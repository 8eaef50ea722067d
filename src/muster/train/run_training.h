// RunTraining: runs one process of a training, whatever has started it. As TF_CONFIG says, it
// trains alone, is one of several replicas, or is the evaluator or a parameter server.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/model/spec/model_spec.h"
#include "muster/train/cluster_role.h"
#include "muster/train/loop/progress.h"
#include "muster/train/loop/run_config.h"
#include "muster/train/loop/specs.h"
#include "muster/train/train_and_evaluate.h"

namespace muster::train {

struct TrainingRequest {
  model::ModelSpec model = {};
  RunConfig run = {};  // completed by ReadTaskEnvironment
  // The data of the whole training: RunTraining gives this process its shard, or its shards if
  // role.min_replicas is set. It also sets `replicas` and `shards`.
  TrainSpec train = {};
  // Hooks for the one process that reports on the training: the chief, or a process that trains
  // alone. They come before train.hooks.
  std::vector<std::shared_ptr<Hook>> chief_hooks = {};
  std::optional<EvalSpec> eval = {};  // made by the chief, a lone process or the evaluator
  std::string warm_start = {};        // "PATH" or "PATH:PATTERN" (weights/warm_start.h); "": none
  std::string continue_from = {};     // see Estimator::set_origin; "": none
  ClusterRoleOptions role = {};       // its `context.stop` must be set
  // The stopping rules of the chief, in words: a job with other rules counts as another job.
  std::string stopping_rules = {};
  ProgressStyle progress = ProgressStyle::kNone;  // of the process that reports
  bool warns_if_unlearned = true;                 // at the end, after a look at the predictions
};

struct TrainingOutcome {
  TrainAndEvaluateResult result = {};
  // Whether this process reports on the training: it is the chief, or trains alone.
  bool reports = false;
};

// Called after each evaluation, with the progress display, which the report must not disturb.
using ReportProgressEvaluation = std::function<void(Progress& progress, const EvalResult& result,
                                                    const std::vector<std::string>& exports)>;

// Runs until this process has nothing left to do. A job whose end is recorded in its model folder
// (cluster/finished_job.h) is not run again, and role.context.note is called to say so. A task that
// was told to end returns OK with result.training.interrupted, or CANCELLED. The numbers that
// columns take from the training data are found before anything else is done (train/first_pass.h).
// Errors are those of MeasureColumns, JoinFromEnvironment, Estimator::Create and TrainAndEvaluate.
absl::StatusOr<TrainingOutcome> RunTraining(TrainingRequest request, io::FileSystem& files,
                                            const Clock& clock,
                                            const ReportProgressEvaluation& report);

}  // namespace muster::train
