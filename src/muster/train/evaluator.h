// RunEvaluator: the role of the task that evaluates, in a process of its own, what the others
// train.
//
// It looks for a new newest checkpoint in model_dir, holds a lease on the one that it reads
// (checkpoint/lease.h), and evaluates and exports as throttle and delay say. When the chief has
// written the last checkpoint, it evaluates that, makes the final exports, tells the chief, and is
// done: also where the data ended early or a hook stopped the training (tf.estimator's evaluator
// waits for max_steps, for ever). Killed and started again, it goes on with the newest checkpoint.
#pragma once

#include <atomic>

#include "muster/base/status.h"
#include "muster/train/checkpoint_evaluator.h"
#include "muster/train/train_and_evaluate.h"

namespace muster::train {

// CANCELLED where the training was stopped before its end; `interrupted` in the result where this
// process was. The errors of `training`: it has failed, or its chief is away, and why.
absl::StatusOr<TrainAndEvaluateResult> RunEvaluator(Estimator& estimator, const EvalSpec& spec,
                                                    TrainingWatch& training, Progress& progress,
                                                    const std::atomic<bool>& stop,
                                                    const ReportEvaluation& report);

}  // namespace muster::train
