// Makes the hooks of a training, in the order of tf.estimator.
#pragma once

#include <memory>
#include <vector>

#include "muster/train/loop/hook.h"
#include "muster/train/loop/model_fn.h"
#include "muster/train/loop/run_config.h"
#include "muster/train/loop/specs.h"

namespace muster::train {

using HookList = std::vector<std::shared_ptr<Hook>>;

// The hooks of a training in tf.estimator's order: CheckpointSaver, the model's
// training_chief_hooks, StepCounter, RunSummary, SummarySaver, the user's hooks, StopAtStep,
// NanTensor, StepFile, the model's training_hooks. (Progress replaces LoggingTensor.) A replica
// that is not the chief has only the user's hooks and those after them.
HookList TrainHooks(const TrainSpec& spec, const RunConfig& config, const EstimatorSpec& custom);

}  // namespace muster::train
