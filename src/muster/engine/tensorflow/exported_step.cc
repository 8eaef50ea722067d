#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "muster/engine/step_checks.h"
#include "muster/engine/tensorflow/exported_engine.h"
#include "muster/math/vector.h"

namespace muster::engine::tensorflow {
namespace {

using features::FeatureBatch;
using host::TensorPlace;
using Role = KerasPort::Role;

bool AllFinite(std::span<const float> values) {
  // The sum of squares is finite only if all values are.
  if (std::isfinite(math::Dot(values.data(), values.data(), values.size()))) return true;
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

}  // namespace

absl::StatusOr<StepResult> ExportedEngine::StepWithoutRows(std::span<const VariableView> weights,
                                                           const StepContext& context,
                                                           GradientSink& sink) {
  if (context.denominator <= 0) return absl::InvalidArgumentError("the batch has no rows");
  MUSTER_RETURN_IF_ERROR(CheckWeights(specs_, weights));
  GiveZeros(sink);
  return StepResult();
}

absl::StatusOr<StepResult> ExportedEngine::Step(std::span<const VariableView> weights,
                                                const FeatureBatch& batch,
                                                const StepContext& context, GradientSink& sink) {
  if (batch.rows == 0) return StepWithoutRows(weights, context, sink);
  MUSTER_RETURN_IF_ERROR(Prepare(weights, batch, true));
  feeds_->SetSeeds(context);
  feeds_->SetDenominator(context.denominator);
  absl::StatusOr<Places> results = Run(step_);
  if (!results.ok()) return Annotate(results.status(), StrCat("step ", context.step));
  MUSTER_ASSIGN_OR_RETURN(StepResult losses, ReadLosses(*results));
  if (!std::isfinite(losses.loss)) return losses;
  MUSTER_RETURN_IF_ERROR(CheckGradients(*results));
  if (!GradientsAreFinite(*results)) {
    losses.loss = std::numeric_limits<double>::quiet_NaN();
    return losses;
  }
  MUSTER_RETURN_IF_ERROR(ReadMetrics(*results, &losses));
  MUSTER_RETURN_IF_ERROR(SumRows(*results, sink));
  GiveGradients(*results, sink);
  return losses;
}

const TensorPlace* ExportedEngine::Find(Places results, Role role, int index) const {
  const auto& outputs = step_.signature->outputs;
  const auto found = std::ranges::find_if(
      outputs, [&](const KerasPort& port) { return port.role == role && port.index == index; });
  return found == outputs.end() ? nullptr : &results[static_cast<size_t>(found - outputs.begin())];
}

absl::StatusOr<StepResult> ExportedEngine::ReadLosses(Places results) const {
  const TensorPlace* const loss = Find(results, Role::kLoss, 0);
  const TensorPlace* const data_loss = Find(results, Role::kDataLoss, 0);
  for (const TensorPlace* const place : {loss, data_loss}) {
    if (place != nullptr && (place->type != kFloatType || place->bytes != sizeof(float))) {
      return absl::DataLossError("the step's loss is not one number of float32");
    }
  }
  StepResult result;
  result.loss = double{Floats(*loss)[0]};
  result.data_loss = data_loss == nullptr ? result.loss : double{Floats(*data_loss)[0]};
  return result;
}

absl::Status ExportedEngine::ReadMetrics(Places results, StepResult* result) const {
  for (size_t i = 0; i < metric_sizes_.size(); ++i) {
    const TensorPlace& place = *Find(results, Role::kMetric, static_cast<int>(i));
    if (place.type != kFloatType || place.bytes != metric_sizes_[i] * sizeof(float)) {
      return absl::DataLossError(
          StrCat("the step's state ", i,
                 " of the metrics does not have its shape: export the model again"));
    }
    const std::span<const float> state = Floats(place);
    result->metric_states.emplace_back(state.begin(), state.end());
  }
  return absl::OkStatus();
}

// All gradients are checked before the sink gets the first one, so that an error leaves all weights
// unchanged.
absl::Status ExportedEngine::CheckGradients(Places results) const {
  for (size_t i = 0; i < specs_.size(); ++i) {
    const bool state = specs_[i].kind == VariableKind::kState;
    const TensorPlace* const place =
        Find(results, state ? Role::kState : Role::kGradient, exported_[i]);
    const auto size = static_cast<uint64_t>(specs_[i].elements()) * sizeof(float);
    bool fits = place->type == kFloatType && place->bytes == size;
    if (specs_[i].kind == VariableKind::kTable) {
      const TensorPlace* const rows = Find(results, Role::kRows, exported_[i]);
      fits =
          place->type == kFloatType && rows->type == kInt32Type && rows->rank == 1 &&
          place->bytes == rows->dims[0] * static_cast<uint64_t>(specs_[i].shape[1]) * sizeof(float);
    }
    if (!fits) {
      return absl::DataLossError(StrCat("the step's ", state ? "new value" : "gradient", " of ",
                                        specs_[i].name,
                                        " does not have its shape: export the model again"));
    }
  }
  return absl::OkStatus();
}

// A loss may be finite while gradients, and soon all weights, are not: TensorFlow's product with
// relu turns NaN into 0.
bool ExportedEngine::GradientsAreFinite(Places results) const {
  const auto& outputs = step_.signature->outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool kept = outputs[i].role == Role::kGradient || outputs[i].role == Role::kState;
    if (kept && !AllFinite(Floats(results[i]))) return false;
  }
  return true;
}

absl::Status ExportedEngine::SumRows(Places results, const GradientSink& sink) {
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].kind != VariableKind::kTable) continue;
    const int variable = exported_[i];
    const TensorPlace& rows = *Find(results, Role::kRows, variable);
    const std::span<const int32_t> positions(
        reinterpret_cast<const int32_t*>(host_->segment().at(rows.offset)), rows.dims[0]);
    const float* const gradient = Floats(*Find(results, Role::kGradient, variable)).data();
    if (!feeds_->block(variable).Sum(positions, gradient,
                                     {.cols = specs_[i].shape[1],
                                      .with_squares = sink.WantsSquares(static_cast<int>(i)),
                                      .clip = static_cast<float>(model_.clip_value),
                                      .apart = sink.WantsEntries(static_cast<int>(i))})) {
      return absl::DataLossError(StrCat("the step's gradient of table ", specs_[i].name,
                                        " names a row that it was not given"));
    }
  }
  return absl::OkStatus();
}

void ExportedEngine::GiveGradients(Places results, GradientSink& sink) {
  for (size_t i = specs_.size(); i-- > 0;) {
    const auto spec = static_cast<int>(i);
    const int variable = exported_[i];
    if (specs_[i].kind == VariableKind::kState) {
      sink.Statistic(spec, Floats(*Find(results, Role::kState, variable)));
    } else if (specs_[i].kind == VariableKind::kDense) {
      sink.Dense(spec, Floats(*Find(results, Role::kGradient, variable)));
    } else {
      const TableBlock& block = feeds_->block(variable);
      sink.Rows(spec, block.touched(), block.sums());
    }
  }
}

void ExportedEngine::GiveZeros(GradientSink& sink) {
  for (size_t i = specs_.size(); i-- > 0;) {
    const auto spec = static_cast<int>(i);
    if (specs_[i].kind == VariableKind::kTable) {
      sink.Rows(spec, {}, {});
      continue;
    }
    zeros_.assign(static_cast<size_t>(specs_[i].elements()), 0);
    if (specs_[i].kind == VariableKind::kState) {
      sink.Statistic(spec, zeros_);
    } else {
      sink.Dense(spec, zeros_);
    }
  }
}

}  // namespace muster::engine::tensorflow
