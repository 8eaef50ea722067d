#include "muster/train/loop/specs.h"

namespace muster::train {

absl::Status Validate(const TrainSpec& spec) {
  if (spec.steps && spec.max_steps) {
    return absl::InvalidArgumentError("can not provide both steps and max_steps");
  }
  if (spec.max_steps && *spec.max_steps <= 0) {
    return absl::InvalidArgumentError(
        StrCat("must specify max_steps > 0, given: ", *spec.max_steps));
  }
  if (spec.steps && *spec.steps <= 0) {
    return absl::InvalidArgumentError(StrCat("must specify steps > 0, given: ", *spec.steps));
  }
  if (!spec.input_fn && spec.input.source.patterns.empty()) {
    return absl::InvalidArgumentError("a training needs an input: files or an input_fn");
  }
  if (spec.replicas != nullptr && spec.steps) {
    return absl::InvalidArgumentError(
        "a replica may be restarted at any step: give max_steps (--max-steps), not steps "
        "(--steps)");
  }
  for (const auto& hook : spec.hooks) {
    if (hook == nullptr) return absl::InvalidArgumentError("a hook of the training is null");
  }
  for (const auto& listener : spec.saving_listeners) {
    if (listener == nullptr) {
      return absl::InvalidArgumentError("a saving_listener of the training is null");
    }
  }
  return absl::OkStatus();
}

absl::Status Validate(const EvalSpec& spec) {
  if (spec.steps && *spec.steps <= 0) {
    return absl::InvalidArgumentError(
        StrCat("must specify steps > 0 of an evaluation, given: ", *spec.steps));
  }
  if (spec.start_delay_secs < 0) {
    return absl::InvalidArgumentError(
        StrCat("must specify start_delay_secs >= 0, given: ", spec.start_delay_secs));
  }
  if (spec.throttle_secs < 0) {
    return absl::InvalidArgumentError(
        StrCat("must specify throttle_secs >= 0, given: ", spec.throttle_secs));
  }
  if (spec.name.find('/') != std::string::npos) {
    return absl::InvalidArgumentError(
        StrCat("the name of an evaluation is part of a folder's name and cannot contain '/': '",
               spec.name, "'"));
  }
  if (!spec.input_fn && spec.input.source.patterns.empty()) {
    return absl::InvalidArgumentError("an evaluation needs an input: files or an input_fn");
  }
  for (const auto& hook : spec.hooks) {
    if (hook == nullptr) return absl::InvalidArgumentError("a hook of the evaluation is null");
  }
  for (const auto& exporter : spec.exporters) {
    if (exporter == nullptr) return absl::InvalidArgumentError("an exporter is null");
  }
  return ValidateExporters(spec.exporters);
}

std::string EvalFolder(const std::string& model_dir, const std::string& name) {
  return io::JoinPath(model_dir, name.empty() ? std::string("eval") : StrCat("eval_", name));
}

}  // namespace muster::train
