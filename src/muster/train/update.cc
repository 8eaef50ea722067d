#include "muster/train/update.h"

namespace muster::train {

std::span<float> UpdateSink::Weights(int variable) const {
  const engine::VariableView& view = variables_.views()[variable];
  return {view.data, static_cast<size_t>(view.rows * view.cols)};
}

const optim::Optimizer& UpdateSink::OptimizerOf(int variable) const {
  return *model_.optimizers[variables_.specs()[variable].group];
}

void UpdateSink::Dense(int variable, std::span<const float> gradient) {
  OptimizerOf(variable).ApplyDense(Weights(variable), variables_.slots(variable), gradient, step_);
}

void UpdateSink::Rows(int variable, std::span<const int32_t> rows,
                      std::span<const float> gradient) {
  const optim::Optimizer& optimizer = OptimizerOf(variable);
  if (rows.empty() && !optimizer.moves_untouched_rows()) return;
  optimizer.ApplyRows(Weights(variable), variables_.views()[variable].cols,
                      variables_.slots(variable), rows, gradient, step_);
}

// Keras: moving -= (moving - batch) * (1 - momentum).
void UpdateSink::Statistic(int variable, std::span<const float> value) {
  const std::span<float> moving = Weights(variable);
  const auto decay = static_cast<float>(1.0 - variables_.specs()[variable].momentum);
  for (size_t i = 0; i < value.size(); ++i) moving[i] -= (moving[i] - value[i]) * decay;
}

}  // namespace muster::train
