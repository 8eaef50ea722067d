// RunSummary: what TensorBoard shows of a whole training: the spec (Text), the settings with their
// results (HParams) and the layers (Graphs).
#pragma once

#include <memory>
#include <vector>

#include "muster/formats/hparams.h"
#include "muster/train/estimator.h"
#include "muster/train/hook.h"

namespace muster::train {

// `spec` and `config` must outlive it. Writes all of it when the session begins, and the session's
// end at the end, unless a signal stopped the training: it is then still to be continued.
std::unique_ptr<Hook> NewRunSummary(const TrainSpec& spec, const RunConfig& config);

// model::Settings (none for a model of a user's function) with what this run was given instead of
// the spec's training defaults: train/{batch_size,epochs,shuffle} of files, train/{seed,threads},
// train/{max_steps,steps} where there are such.
std::vector<formats::Hparam> RunSettings(const model::ModelSpec& model, const TrainSpec& spec,
                                         const RunConfig& config);

}  // namespace muster::train
