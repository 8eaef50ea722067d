// The optimizer of an exported Keras model (docs/formats/keras_export.md, "Optimizer"), as this
// program's specs by Keras's rules.
#pragma once

#include <memory>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/tensorflow/keras_export.h"
#include "muster/optim/clip.h"
#include "muster/optim/optimizer.h"

namespace muster::model {

struct KerasOptimizer {
  // One spec; if weight decay excludes some variables, also a second one, without the weight decay.
  std::vector<optim::OptimizerSpec> specs;
  // For each variable of the export the index of its spec; 0 for variables that are not trained.
  std::vector<int> groups;
  // If not null: the learning rate of `specs`, which the engine's updater computes step by step.
  std::shared_ptr<optim::StepRate> rate;
  // The engine's updater is the optimizer: `specs` is empty.
  bool applies = false;
  // Clipping by value: the engine cuts the entries of tables (optim::ClipSpec::tables_are_cut).
  optim::ClipSpec clip;
};

// INVALID_ARGUMENT "FOLDER/model.json.optimizer: ..." names the field that is missing or out of its
// range; UNIMPLEMENTED, with what to export instead, for an optimizer or a schedule that this
// version does not know.
absl::StatusOr<KerasOptimizer> ParseKerasOptimizer(const engine::tensorflow::KerasExport& model);

}  // namespace muster::model
