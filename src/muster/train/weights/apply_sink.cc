#include "muster/train/weights/apply_sink.h"

namespace muster::train {

ApplySink::ApplySink(engine::Updater& updater, const Variables& variables,
                     engine::GradientSink& next)
    : updater_(updater), variables_(variables), next_(next), kept_(variables.specs().size()) {}

void ApplySink::Dense(int variable, std::span<const float> gradient) {
  Rows(variable, {}, gradient);
}

void ApplySink::Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) {
  Kept& kept = kept_[static_cast<size_t>(variable)];
  kept.values.assign(gradient.begin(), gradient.end());
  kept.rows.assign(rows.begin(), rows.end());
  any_ = true;
}

void ApplySink::Statistic(int variable, std::span<const float> value) {
  next_.Statistic(variable, value);
}

absl::Status ApplySink::Finish() {
  if (!any_) return absl::OkStatus();
  any_ = false;
  std::vector<engine::VariableGradient> gradients;
  for (const Kept& kept : kept_) gradients.push_back({.values = kept.values, .rows = kept.rows});
  variables_.BeforeChange();
  return updater_.Apply(variables_.views(), variables_.updater_slots(), gradients, step_);
}

}  // namespace muster::train
