#include "muster/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/optim/adagrad.h"
#include "muster/optim/adam.h"
#include "muster/optim/ftrl.h"
#include "muster/optim/rms_prop.h"
#include "muster/optim/sgd.h"
#include "muster/optim/weight_decay.h"

namespace muster::optim {
namespace {

constexpr const OptimizerKind* kKinds[] = {&kFtrlKind, &kAdagradKind, &kAdamKind, &kRmsPropKind,
                                           &kSgdKind};

absl::StatusOr<std::unique_ptr<Optimizer>> NewRule(const OptimizerSpec& spec) {
  MUSTER_RETURN_IF_ERROR(CheckValue(std::isfinite(spec.learning_rate) && spec.learning_rate >= 0,
                                    spec.kind, "learning_rate", spec.learning_rate, "0 or more"));
  MUSTER_RETURN_IF_ERROR(Annotate(CheckSchedule(spec.schedule), OptimizerName(spec.kind)));
  const OptimizerKind& kind = GetKind(spec.kind);
  for (const OptimizerNumber& number : kind.numbers) {
    const double value = spec.*number.member;
    MUSTER_RETURN_IF_ERROR(CheckValue(IsIn(number.range, value), spec.kind, number.name, value,
                                      RangeText(number.range)));
  }
  if (kind.check != nullptr) MUSTER_RETURN_IF_ERROR(kind.check(spec));
  return kind.make(spec);
}

}  // namespace

std::span<const OptimizerKind* const> OptimizerKinds() { return kKinds; }

const OptimizerKind& GetKind(OptimizerSpec::Kind kind) {
  return **std::ranges::find(kKinds, kind, &OptimizerKind::kind);
}

std::string_view OptimizerName(OptimizerSpec::Kind kind) {
  return GetKind(kind).keras_classes.front();
}

std::string_view RangeText(ValueRange range) {
  switch (range) {
    case ValueRange::kPositive:
      return "over 0";
    case ValueRange::kNotNegative:
      return "0 or more";
    case ValueRange::kNotPositive:
      return "0 or less";
    case ValueRange::kUpToOne:
      return "from 0 to 1";
    case ValueRange::kBelowOne:
      return "at least 0 and under 1";
  }
  return "";
}

absl::Status CheckValue(bool right, OptimizerSpec::Kind kind, std::string_view field, double value,
                        std::string_view range) {
  if (right) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(OptimizerName(kind), ": ", field, " is ", value, ": it must be ", range));
}

void StepTable(const Optimizer& optimizer, std::span<float> table, int64_t cols,
               std::span<float* const> slots, std::span<const int32_t> rows,
               std::span<const float> gradient, int64_t step) {
  if (optimizer.moves_untouched_rows()) {
    const int64_t table_rows = static_cast<int64_t>(table.size()) / cols;
    TouchedRows touched;
    touched.Assign(table_rows, rows);
    optimizer.Walk(table, cols, slots, 0, table_rows, touched, step);
  }
  optimizer.ApplyRows(table, cols, slots, rows, gradient, step);
}

absl::StatusOr<std::unique_ptr<Optimizer>> NewOptimizer(const OptimizerSpec& spec) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Optimizer> rule, NewRule(spec));
  MUSTER_RETURN_IF_ERROR(CheckValue(std::isfinite(spec.weight_decay) && spec.weight_decay >= 0,
                                    spec.kind, "weight_decay", spec.weight_decay, "0 or more"));
  const bool keras = spec.rule == OptimizerSpec::Rule::kKeras;
  if (keras && spec.lazy) {
    return absl::InvalidArgumentError(
        StrCat(OptimizerName(spec.kind), ": by Keras's rule none is lazy"));
  }
  if (spec.weight_decay == 0) return rule;
  if (!GetKind(spec.kind).decays && !keras) {
    return absl::InvalidArgumentError(StrCat(
        OptimizerName(spec.kind),
        ": weight_decay would be undone, as its weights are made anew from its slots; give l2"));
  }
  return NewWeightDecay(spec, std::move(rule));
}

}  // namespace muster::optim
