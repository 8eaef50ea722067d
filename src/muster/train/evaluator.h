// RunEvaluator: the evaluator, a separate task that evaluates the checkpoints of a training.
//
// The evaluator looks for a newer checkpoint in model_dir, holds a lease on the one that it reads
// (checkpoint/lease.h), and evaluates and exports it when start_delay_secs and throttle_secs allow.
// When the chief has written the last checkpoint, the evaluator evaluates it, makes the final
// exports, informs the chief, and ends, even if the data ended early or a hook stopped the training
// (tf.estimator's evaluator waits for max_steps indefinitely). After a restart it continues with
// the newest checkpoint.
#pragma once

#include <atomic>

#include "muster/base/status.h"
#include "muster/train/checkpoint_evaluator.h"

namespace muster::train {

// CANCELLED if the training was stopped before its end; result.training.interrupted is true if this
// process was. The errors of `training` say why the training has failed, or that its chief is away.
absl::StatusOr<TrainAndEvaluateResult> RunEvaluator(Estimator& estimator, const EvalSpec& spec,
                                                    TrainingWatch& training, Progress& progress,
                                                    const std::atomic<bool>& stop,
                                                    const ReportEvaluation& report);

}  // namespace muster::train
