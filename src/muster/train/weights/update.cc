#include "muster/train/weights/update.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"

namespace muster::train {
namespace {

// Waking the other threads takes as long as updating this many floats.
constexpr size_t kFewFloats = 32 * 1024;
// Adagrad chooses one of two roundings for each block of kBlockFloats floats, or of kBlockRows rows
// of one float, by the values in the block (math/update_kernels.inc): parts must not cut blocks.
constexpr size_t kBlockFloats = 512;
constexpr size_t kBlockRows = 64;

}  // namespace

std::span<float> UpdateSink::Weights(int variable) const {
  const engine::VariableView& view = variables_.views()[variable];
  return {view.data, static_cast<size_t>(view.rows * view.cols)};
}

const optim::Optimizer& UpdateSink::GetOptimizer(int variable) const {
  return *model_.optimizers[variables_.specs()[variable].group];
}

void UpdateSink::InParts(size_t n, size_t floats, size_t unit,
                         absl::FunctionRef<void(size_t, size_t)> update) {
  if (crew_.size() == 1 || n * floats < kFewFloats) return update(0, n);
  const auto parts = static_cast<size_t>(crew_.size());
  const size_t units = (n + unit - 1) / unit;
  crew_.Run([&](int member) {
    const auto part = static_cast<size_t>(member);
    update(std::min(n, units * part / parts * unit),
           std::min(n, units * (part + 1) / parts * unit));
  });
}

void UpdateSink::Dense(int variable, std::span<const float> gradient) {
  variables_.BeforeChange(variable);
  const optim::Optimizer& optimizer = GetOptimizer(variable);
  const std::span<float> weights = Weights(variable);
  const std::span<float* const> slots = variables_.slots(variable);
  InParts(weights.size(), 1, kBlockFloats, [&](size_t first, size_t last) {
    absl::InlinedVector<float*, 4> part(slots.begin(), slots.end());
    for (float*& slot : part) slot += first;
    const size_t n = last - first;
    optimizer.ApplyDense(weights.subspan(first, n), part, gradient.subspan(first, n), step_);
  });
}

bool UpdateSink::WantsSquares(int variable) const {
  return variables_.specs()[variable].kind == engine::VariableKind::kTable &&
         GetOptimizer(variable).wants_squares();
}

void UpdateSink::Rows(int variable, std::span<const int32_t> rows,
                      std::span<const float> gradient) {
  if (dynamic_tables_ != nullptr && variables_.specs()[variable].growth) {
    return dynamic_tables_->Apply(variable, rows, gradient, step_);
  }
  const optim::Optimizer& optimizer = GetOptimizer(variable);
  if (rows.empty() && !optimizer.moves_untouched_rows()) return;
  const std::span<float> table = Weights(variable);
  const int64_t cols = variables_.views()[variable].cols;
  const std::span<float* const> slots = variables_.slots(variable);
  const auto width = static_cast<size_t>(cols);
  if (optimizer.moves_untouched_rows()) {
    variables_.BeforeChange(variable);
    const size_t table_rows = table.size() / width;
    touched_.Assign(static_cast<int64_t>(table_rows), rows);
    InParts(table_rows, width, 1, [&](size_t first, size_t last) {
      optimizer.Walk(table, cols, slots, static_cast<int64_t>(first), static_cast<int64_t>(last),
                     touched_, step_);
    });
  } else {
    variables_.BeforeChange(variable, rows);
  }
  const auto given = static_cast<size_t>(optimizer.GetLayout(cols).width());
  InParts(rows.size(), width, kBlockRows, [&](size_t first, size_t last) {
    optimizer.ApplyRows(table, cols, slots, rows.subspan(first, last - first),
                        gradient.subspan(first * given, (last - first) * given), step_);
  });
}

// As in Keras: moving -= (moving - batch) * (1 - momentum); without momentum moving = batch.
void UpdateSink::Statistic(int variable, std::span<const float> value) {
  variables_.BeforeChange(variable);
  const std::span<float> moving = Weights(variable);
  if (variables_.specs()[variable].momentum == 0) {
    std::ranges::copy(value, moving.begin());
    return;
  }
  const auto decay = static_cast<float>(1.0 - variables_.specs()[variable].momentum);
  for (size_t i = 0; i < value.size(); ++i) moving[i] -= (moving[i] - value[i]) * decay;
}

}  // namespace muster::train
