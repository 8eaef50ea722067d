// RunSummary: describes a whole training for TensorBoard: the spec (Text), the settings with their
// results (HParams) and the layers (Graphs).
#pragma once

#include <memory>
#include <vector>

#include "muster/formats/hparams.h"
#include "muster/train/loop/hook.h"
#include "muster/train/loop/specs.h"

namespace muster::train {

// `spec` and `config` must outlive the hook. Writes all of it when the session begins, and the
// session's end at the end, unless a signal stopped the training, which may then be continued.
std::unique_ptr<Hook> NewRunSummary(const TrainSpec& spec, const RunConfig& config);

// Returns model::Settings (none for a user's model function), with the settings of this run instead
// of the spec's training defaults: train/{batch_size,epochs,shuffle} for files,
// train/{seed,threads}, and train/{max_steps,steps} if given.
std::vector<formats::Hparam> RunSettings(const model::ModelSpec& model, const TrainSpec& spec,
                                         const RunConfig& config);

}  // namespace muster::train
