#include "muster/train/parameter_server/ps_variables.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"

#include "muster/optim/optimizer_kind.h"
#include "muster/train/weights/dynamic_tables.h"
#include "muster/train/weights/variables.h"

namespace muster::train {
namespace {

// "Ftrl, Adagrad, ...": the optimizers that servers compute.
std::string KerasClasses() {
  std::vector<std::string> names;
  for (const optim::OptimizerKind* const kind : optim::OptimizerKinds()) {
    names.insert(names.end(), kind->keras_classes.begin(), kind->keras_classes.end());
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace

absl::Status CheckServable(const model::ModelSpec& spec) {
  const auto parts = spec.DeepParts();
  const auto synchronized = [](const auto& part) { return part.second->synchronized_batch_norm; };
  if (std::ranges::any_of(parts, synchronized)) {
    return absl::UnimplementedError(
        "synchronized_batch_norm with parameter servers: their workers do not wait for each other "
        "within a step; train by --strategy allreduce, or leave it out");
  }
  const char* const function = spec.exported == nullptr          ? nullptr
                               : spec.exported->applies          ? "optimizer"
                               : spec.exported->rate_is_function ? "learning rate"
                                                                 : nullptr;
  if (function != nullptr) {
    return absl::UnimplementedError(StrCat(
        spec.exported->folder, ": the ", function, " of ", spec.exported->optimizer_name,
        " is a function of TensorFlow, which parameter servers do not run: train by "
        "--strategy allreduce (--workers N without --ps), or export with ",
        spec.exported->applies ? StrCat("one of ", KerasClasses(), " and no constraints on weights")
                               : "a number or one of Keras's schedules"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ps::Variables> PsVariables(const model::Model& model, bool synchronous,
                                          uint64_t seed) {
  MUSTER_RETURN_IF_ERROR(CheckServable(model.spec));
  using Clip = optim::ClipSpec::Kind;
  const optim::ClipSpec& clip = model.spec.clip_gradients;
  ps::Variables variables;
  for (const engine::VariableSpec& spec : model.engine->variables()) {
    ps::Variable& variable = variables.emplace_back();
    variable.name = spec.name;
    variable.rows = 1;
    variable.cols = spec.elements();
    variable.momentum = spec.momentum;
    if (spec.kind == engine::VariableKind::kState) {
      variable.kind = ps::Variable::Kind::kState;
      continue;
    }
    variable.optimizer = model.optimizers[static_cast<size_t>(spec.group)].get();
    const bool is_table = spec.kind == engine::VariableKind::kTable;
    // Asynchronous workers clip their own gradients, before they push them.
    if (synchronous && clip.kind == Clip::kValue && !(is_table && clip.tables_are_cut)) {
      variable.clip = static_cast<float>(clip.limit);
    }
    if (!is_table) continue;
    variable.kind = ps::Variable::Kind::kTable;
    variable.tensors = GetTensorNames(model, spec);
    variable.rows = spec.shape[0];
    variable.cols = spec.shape[1];
    if (spec.growth) variable.growth = GetGrowth(spec, seed, variables.size() - 1);
  }
  return variables;
}

bool IsSavedByServers(const engine::VariableSpec& spec) {
  return spec.kind == engine::VariableKind::kTable &&
         ps::IsSavedByServers(spec.growth.has_value(), spec.elements());
}

}  // namespace muster::train
