// TrainAndEvaluate: a training with evaluations and exports of its checkpoints.
//
// In one process the evaluation is a listener of the CheckpointSaver. It skips the checkpoint of
// the start, and evaluates a new checkpoint if start_delay_secs have passed since the start and
// throttle_secs since the last evaluation. At the end it evaluates the last checkpoint, unless that
// was done, and makes the final exports. With EvalSpec::every_epoch it evaluates at the end of each
// epoch instead, of which it then writes a checkpoint; a run that continues from that checkpoint
// evaluates it if the earlier run did not. In a cluster with an evaluator, the evaluator does the
// same with the checkpoints that the chief writes (train/evaluator.h), and the chief only trains.
//
// Faults of tf.estimator that are corrected here: the final export is made whenever the training
// ends, also if the data ends or a hook stops it (not only at max_steps); a training that has
// nothing to do still evaluates; the best exporter knows the best results of earlier runs, and of
// evaluations with a name other than "".
#pragma once

#include <atomic>

#include "muster/base/status.h"
#include "muster/train/checkpoint_evaluator.h"
#include "muster/train/estimator.h"
#include "muster/train/loop/specs.h"

namespace muster::train {

// Runs the task of the estimator's config: a replica trains with TrainSpec::replicas, the evaluator
// follows EvalSpec::training (train/cluster_role.h makes both from TF_CONFIG).
// Without them: UNIMPLEMENTED for a cluster of several tasks. INVALID_ARGUMENT for an evaluator
// with an index above 0. A single chief only trains (TF_CONFIG's evaluator evaluates); a single
// master does both.
absl::StatusOr<TrainAndEvaluateResult> TrainAndEvaluate(Estimator& estimator, TrainSpec train_spec,
                                                        EvalSpec eval_spec, Progress& progress,
                                                        const std::atomic<bool>& stop,
                                                        const ReportEvaluation& report = {});

// Whether a task of `config` evaluates its own checkpoints in TrainAndEvaluate. Among replicas
// (TrainSpec::replicas) only the chief does, unless there is an evaluator. UNIMPLEMENTED for a task
// that would train alone although its cluster has other tasks.
absl::StatusOr<bool> EvaluatesItself(const RunConfig& config, const Peers* replicas);

}  // namespace muster::train
