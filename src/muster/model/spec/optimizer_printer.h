// Prints the optimizers, learning rates and clipping of a model file in the form that
// optimizer_parser.h reads.
#pragma once

#include <yaml-cpp/yaml.h>

#include "muster/optim/clip.h"
#include "muster/optim/optimizer.h"

namespace muster::model {

// Prints the entry "optimizer: {...}" into the map that is open in `out`.
void EmitOptimizer(YAML::Emitter& out, const optim::OptimizerSpec& spec);
// Prints "clip_gradients: {...}", or nothing if there is no clipping.
void EmitClip(YAML::Emitter& out, const optim::ClipSpec& clip);

}  // namespace muster::model
