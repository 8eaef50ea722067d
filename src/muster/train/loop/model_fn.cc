#include "muster/train/loop/model_fn.h"

#include <utility>

namespace muster::train {
namespace {

absl::Status CheckOptimizers(const EstimatorSpec& spec) {
  for (const engine::VariableSpec& variable : spec.engine->variables()) {
    if (variable.kind == engine::VariableKind::kState) continue;
    if (variable.group >= 0 && static_cast<size_t>(variable.group) < spec.optimizers.size()) {
      continue;
    }
    return absl::InvalidArgumentError(StrCat(
        "EstimatorSpec of mode train: missing train_op: variable '", variable.name,
        "' is of group ", variable.group, ", there are ", spec.optimizers.size(), " optimizers"));
  }
  return absl::OkStatus();
}

absl::Status CheckHead(const EstimatorSpec& spec, std::string_view what) {
  if (!spec.head) {
    return absl::InvalidArgumentError(
        StrCat(what, "missing ", spec.mode == ModeKeys::kPredict ? "predictions" : "metrics",
               ": give the head that makes them of logits"));
  }
  MUSTER_RETURN_IF_ERROR(Annotate(engine::Validate(*spec.head), "EstimatorSpec"));
  if (spec.head->logits_dimension() == spec.engine->logits_dimension()) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(what, "the head wants ", spec.head->logits_dimension(),
                                           " logits, the engine gives ",
                                           spec.engine->logits_dimension()));
}

}  // namespace

std::string_view ModeName(ModeKeys mode) {
  switch (mode) {
    case ModeKeys::kTrain:
      return "train";
    case ModeKeys::kEval:
      return "eval";
    case ModeKeys::kPredict:
      return "predict";
  }
  return "";
}

absl::Status Validate(const EstimatorSpec& spec, ModeKeys mode) {
  const std::string what = StrCat("EstimatorSpec of mode ", ModeName(mode), ": ");
  if (spec.mode != mode) {
    return absl::InvalidArgumentError(StrCat(what, "says mode ", ModeName(spec.mode)));
  }
  if (spec.engine == nullptr) {
    return absl::InvalidArgumentError(StrCat(
        what, "missing ", mode == ModeKeys::kPredict ? "predictions" : "loss", ": give an engine"));
  }
  for (const auto& [name, metric] : spec.eval_metrics) {
    if (name == "loss" || name == "global_step") {
      return absl::InvalidArgumentError(StrCat(what, "metric with name '", name,
                                               "' is not allowed, because the Estimator ",
                                               "already defines a metric with that name"));
    }
    if (!metric) return absl::InvalidArgumentError(StrCat(what, "metric '", name, "' is null"));
  }
  for (const auto* hooks :
       {&spec.training_chief_hooks, &spec.training_hooks, &spec.evaluation_hooks}) {
    for (const auto& hook : *hooks) {
      if (hook == nullptr) return absl::InvalidArgumentError(StrCat(what, "a hook is null"));
    }
  }
  if (mode == ModeKeys::kTrain) return CheckOptimizers(spec);
  return CheckHead(spec, what);
}

absl::StatusOr<std::unique_ptr<ModeModel>> CallModelFn(const ModelFn& model_fn, ModeKeys mode,
                                                       const features::FeatureSpec& features,
                                                       const RunConfig& config) {
  auto made = std::make_unique<ModeModel>();
  MUSTER_ASSIGN_OR_RETURN(made->custom, model_fn(mode, config));
  MUSTER_RETURN_IF_ERROR(Validate(made->custom, mode));
  model::Model& model = made->model;
  model.spec.features = features;
  if (made->custom.head) model.spec.head = *made->custom.head;
  model.request = made->custom.request;
  model.engine = std::move(made->custom.engine);
  model.optimizer_specs = made->custom.optimizers;
  for (const optim::OptimizerSpec& optimizer : model.optimizer_specs) {
    MUSTER_ASSIGN_OR_RETURN(auto built, optim::NewOptimizer(optimizer));
    model.optimizers.push_back(std::move(built));
  }
  return made;
}

}  // namespace muster::train
