// The optimizers, learning rates and clipping of a model file (docs/spec.md).
#pragma once

#include "muster/formats/yaml_reader.h"
#include "muster/optim/clip.h"
#include "muster/optim/optimizer.h"

namespace muster::model {

// Both functions record errors in the document's status.
optim::OptimizerSpec ParseOptimizer(const formats::YamlReader& node);
optim::ClipSpec ParseClip(const formats::YamlReader& node);

}  // namespace muster::model
