// Parses the optimizer of an exported Keras model (docs/formats/keras_export.md, "Optimizer") into
// this program's specs with Keras's rules.
#pragma once

#include <memory>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/tensorflow/keras_export.h"
#include "muster/optim/clip.h"
#include "muster/optim/optimizer.h"

namespace muster::model {

struct KerasOptimizer {
  // One spec; if weight decay excludes some variables, also a second one without weight decay.
  std::vector<optim::OptimizerSpec> specs;
  // By variable of the export: the index of its spec; 0 for variables that are not trained.
  std::vector<int> groups;
  // If not null: the learning rate of `specs`, which the engine's updater computes for each step.
  std::shared_ptr<optim::StepRate> rate;
  // True: the optimizer is the engine's updater, and `specs` is empty.
  bool applies = false;
  // Clipping by value: the engine cuts the entries of tables (optim::ClipSpec::tables_are_cut).
  optim::ClipSpec clip;
};

// INVALID_ARGUMENT "FOLDER/model.json.optimizer: ..." names the field that is missing or out of its
// range. UNIMPLEMENTED, for an optimizer or a schedule that this version does not know, says what
// to export instead.
absl::StatusOr<KerasOptimizer> ParseKerasOptimizer(const engine::tensorflow::KerasExport& model);

}  // namespace muster::model
