// Prints the optimizers, learning rates and clipping of a model file as optimizer_parser.h reads
// them.
#pragma once

#include <yaml-cpp/yaml.h>

#include "muster/optim/clip.h"
#include "muster/optim/optimizer.h"

namespace muster::model {

// The entry "optimizer: {...}" of the map that is open in `out`.
void EmitOptimizer(YAML::Emitter& out, const optim::OptimizerSpec& spec);
// "clip_gradients: {...}", or nothing.
void EmitClip(YAML::Emitter& out, const optim::ClipSpec& clip);

}  // namespace muster::model
