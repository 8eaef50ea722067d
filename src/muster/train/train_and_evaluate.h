// TrainAndEvaluate: a training with evaluations and exports of its checkpoints.
//
// In one process an evaluation is a listener of the CheckpointSaver: it passes over the checkpoint
// of the start, then evaluates a new checkpoint when start_delay_secs are over since the start and
// throttle_secs since the last evaluation. At the end the last checkpoint is evaluated unless it
// was, and that is the final export. In a cluster with an evaluator that task does the same to the
// checkpoints that the chief writes (train/evaluator.h), and the chief trains only.
//
// Faults of tf.estimator that are mended here: the final export comes whenever the training ends,
// also when the data ends or a hook stops it (not only at max_steps); a training that has nothing
// to do still evaluates; the best exporter knows the best of earlier runs, and evaluations of
// another name than "".
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/train/checkpoint_evaluator.h"
#include "muster/train/estimator.h"
#include "muster/train/specs.h"

namespace muster::train {

struct TrainAndEvaluateResult {
  TrainResult training = {};
  std::optional<EvalResult> evaluation = {};  // the last; none when the training was interrupted
  std::vector<std::string> exports = {};      // folders made by the last evaluation
};

// The role is that of the estimator's config: a replica trains with TrainSpec::replicas, the
// evaluator follows EvalSpec::training (train/cluster_role.h makes both from TF_CONFIG); without
// them UNIMPLEMENTED for a cluster of several tasks. INVALID_ARGUMENT for an evaluator with an
// index above 0. A single chief trains only (TF_CONFIG's evaluator evaluates), a single master does
// both.
absl::StatusOr<TrainAndEvaluateResult> TrainAndEvaluate(Estimator& estimator, TrainSpec train_spec,
                                                        const EvalSpec& eval_spec,
                                                        Progress& progress,
                                                        const std::atomic<bool>& stop,
                                                        const ReportEvaluation& report = {});

// What a task of `config` does in TrainAndEvaluate: whether it evaluates its own checkpoints. Among
// replicas (TrainSpec::replicas) the chief does, unless they have an evaluator. UNIMPLEMENTED for a
// task that would train alone where its cluster has others.
absl::StatusOr<bool> EvaluatesItself(const RunConfig& config, const Peers* replicas);

}  // namespace muster::train
