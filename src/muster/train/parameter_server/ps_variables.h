// The variables of a model as parameter servers keep them.
#pragma once

#include "muster/base/status.h"
#include "muster/model/model.h"
#include "muster/ps/wire/variable.h"

namespace muster::train {

// UNIMPLEMENTED for a model that parameter servers cannot train: one with synchronised BatchNorm,
// or an exported one whose optimizer or learning rate is a function that TensorFlow computes.
absl::Status CheckServable(const model::ModelSpec& spec);

// The model's variables as servers and replicas know them; the result points into `model`. Returns
// CheckServable's errors.
absl::StatusOr<ps::Variables> PsVariables(const model::Model& model, bool synchronous,
                                          uint64_t seed = 1);

// ps::Variable::is_saved_by_servers of a model's variable.
bool IsSavedByServers(const engine::VariableSpec& spec);

}  // namespace muster::train
