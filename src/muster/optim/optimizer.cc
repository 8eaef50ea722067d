#include "muster/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "muster/base/nearest.h"
#include "muster/optim/adagrad.h"
#include "muster/optim/adam.h"
#include "muster/optim/ftrl.h"
#include "muster/optim/past_squares.h"
#include "muster/optim/rms_prop.h"
#include "muster/optim/sgd.h"
#include "muster/optim/weight_decay.h"

namespace muster::optim {
namespace {

constexpr const OptimizerKind* kKinds[] = {&kFtrlKind, &kAdagradKind, &kAdamKind, &kRmsPropKind,
                                           &kSgdKind};

// Returns the kind of a spec that NewOptimizer accepts.
const OptimizerKind& GetKind(std::string_view name) {
  const OptimizerKind* const kind = FindKind(name);
  if (kind == nullptr) std::abort();
  return *kind;
}

// Returns null if the kind has no parameter of that name.
const OptimizerParameter* FindParameter(const OptimizerKind& kind, std::string_view name) {
  for (const OptimizerParameter& parameter : kind.parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

absl::Status CheckNames(const OptimizerSpec& spec) {
  const OptimizerKind* const kind = FindKind(spec.kind);
  if (kind == nullptr) {
    std::vector<std::string> known;
    for (const OptimizerKind* const each : kKinds) known.emplace_back(each->name);
    return absl::InvalidArgumentError(
        StrCat("unknown optimizer '", spec.kind, "'", DidYouMean(spec.kind, known)));
  }
  for (const auto& [name, value] : spec.parameters) {
    if (FindParameter(*kind, name) != nullptr) continue;
    return absl::InvalidArgumentError(
        StrCat(OptimizerName(spec.kind), " has no parameter '", name, "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Optimizer>> NewRule(const OptimizerSpec& spec) {
  MUSTER_RETURN_IF_ERROR(CheckNames(spec));
  MUSTER_RETURN_IF_ERROR(CheckValue(std::isfinite(spec.learning_rate) && spec.learning_rate >= 0,
                                    spec.kind, "learning_rate", spec.learning_rate, "0 or more"));
  MUSTER_RETURN_IF_ERROR(Annotate(CheckSchedule(spec.schedule), OptimizerName(spec.kind)));
  const OptimizerKind& kind = GetKind(spec.kind);
  for (const OptimizerParameter& parameter : kind.parameters) {
    const double value = spec.Get(parameter.name);
    MUSTER_RETURN_IF_ERROR(CheckValue(IsIn(parameter.range, value), spec.kind, parameter.name,
                                      value, RangeText(parameter.range)));
  }
  if (kind.check != nullptr) MUSTER_RETURN_IF_ERROR(kind.check(spec));
  auto rule = kind.make(spec);
  const bool keras = spec.rule == OptimizerSpec::Rule::kKeras;
  if (keras && spec.squares && !rule->wants_squares()) return NewPastSquares(std::move(rule));
  return rule;
}

}  // namespace

std::span<const OptimizerKind* const> OptimizerKinds() { return kKinds; }

const OptimizerKind* FindKind(std::string_view name) {
  const auto found = std::ranges::find(kKinds, name, &OptimizerKind::name);
  return found == std::end(kKinds) ? nullptr : *found;
}

const OptimizerKind* FindKerasClass(std::string_view name) {
  for (const OptimizerKind* const kind : kKinds) {
    if (std::ranges::find(kind->keras_classes, name) != kind->keras_classes.end()) return kind;
  }
  return nullptr;
}

std::string_view OptimizerName(std::string_view kind) {
  return GetKind(kind).keras_classes.front();
}

double OptimizerSpec::Get(std::string_view parameter) const {
  const OptimizerParameter* const known = FindParameter(GetKind(kind), parameter);
  if (known == nullptr) std::abort();
  const auto given = parameters.find(parameter);
  return given == parameters.end() ? known->fallback : given->second;
}

OptimizerSpec DefaultOptimizer(std::string_view kind) {
  const OptimizerKind& known = GetKind(kind);
  OptimizerSpec spec{.kind = std::string(kind), .learning_rate = known.learning_rate};
  for (const OptimizerParameter& parameter : known.parameters) {
    spec.parameters.emplace(parameter.name, parameter.fallback);
  }
  return spec;
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
    case ValueRange::kFlag:
      return "0 or 1";
  }
  return "";
}

absl::Status CheckValue(bool right, std::string_view kind, std::string_view field, double value,
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
        StrCat(OptimizerName(spec.kind), ": an optimizer by Keras's rule cannot be lazy"));
  }
  if (spec.weight_decay == 0) return rule;
  if (!GetKind(spec.kind).decays && !keras) {
    return absl::InvalidArgumentError(StrCat(OptimizerName(spec.kind),
                                             ": weight_decay has no effect, since weights are "
                                             "computed from the slots: give l2 instead"));
  }
  return NewWeightDecay(spec, std::move(rule));
}

}  // namespace muster::optim
