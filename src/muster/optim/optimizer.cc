#include "muster/optim/optimizer.h"

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

absl::Status Check(bool right, OptimizerSpec::Kind kind, std::string_view field, double value,
                   std::string_view range) {
  if (right) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(OptimizerName(kind), ": ", field, " is ", value, ": it must be ", range));
}

absl::Status CheckFtrl(const OptimizerSpec& spec) {
  const auto check = [&](std::string_view field, double value) {
    return Check(std::isfinite(value) && value >= 0, spec.kind, field, value, "0 or more");
  };
  MUSTER_RETURN_IF_ERROR(check("initial_accumulator", spec.initial_accumulator));
  MUSTER_RETURN_IF_ERROR(check("l1", spec.l1));
  MUSTER_RETURN_IF_ERROR(check("l2", spec.l2));
  MUSTER_RETURN_IF_ERROR(check("l2_shrinkage", spec.l2_shrinkage));
  MUSTER_RETURN_IF_ERROR(check("beta", spec.beta));
  if (spec.learning_rate == 0) {
    return absl::InvalidArgumentError(
        "Ftrl divides by the learning rate, which is 0: to train nothing use another optimizer");
  }
  if (ReachesZero(spec.learning_rate, spec.schedule)) {
    return absl::InvalidArgumentError(
        StrCat("Ftrl divides by the learning rate, and this ", ScheduleName(spec.schedule.kind),
               " schedule reaches 0: give alpha, end or warm_up_from a value over 0"));
  }
  return Check(std::isfinite(spec.learning_rate_power) && spec.learning_rate_power <= 0, spec.kind,
               "learning_rate_power", spec.learning_rate_power, "0 or less");
}

absl::Status CheckAdagrad(const OptimizerSpec& spec) {
  MUSTER_RETURN_IF_ERROR(
      Check(std::isfinite(spec.initial_accumulator) && spec.initial_accumulator >= 0, spec.kind,
            "initial_accumulator", spec.initial_accumulator, "0 or more"));
  return Check(std::isfinite(spec.epsilon) &&
                   (spec.epsilon > 0 || (spec.epsilon == 0 && spec.initial_accumulator > 0)),
               spec.kind, "epsilon", spec.epsilon,
               "over 0, or 0 with an initial_accumulator over 0");
}

absl::Status CheckAdam(const OptimizerSpec& spec) {
  MUSTER_RETURN_IF_ERROR(Check(spec.beta1 >= 0 && spec.beta1 < 1, spec.kind, "beta1", spec.beta1,
                               "at least 0 and under 1"));
  MUSTER_RETURN_IF_ERROR(Check(spec.beta2 >= 0 && spec.beta2 < 1, spec.kind, "beta2", spec.beta2,
                               "at least 0 and under 1"));
  return Check(std::isfinite(spec.epsilon) && spec.epsilon > 0, spec.kind, "epsilon", spec.epsilon,
               "over 0");
}

absl::Status CheckMomentum(const OptimizerSpec& spec) {
  return Check(spec.momentum >= 0 && spec.momentum <= 1, spec.kind, "momentum", spec.momentum,
               "from 0 to 1");
}

absl::Status CheckRmsProp(const OptimizerSpec& spec) {
  MUSTER_RETURN_IF_ERROR(CheckMomentum(spec));
  MUSTER_RETURN_IF_ERROR(
      Check(spec.rho >= 0 && spec.rho < 1, spec.kind, "rho", spec.rho, "at least 0 and under 1"));
  return Check(std::isfinite(spec.epsilon) && spec.epsilon > 0, spec.kind, "epsilon", spec.epsilon,
               "over 0");
}

absl::Status CheckSgd(const OptimizerSpec& spec) {
  MUSTER_RETURN_IF_ERROR(CheckMomentum(spec));
  if (spec.nesterov && spec.momentum == 0) {
    return absl::InvalidArgumentError("SGD: nesterov is a kind of momentum: give momentum over 0");
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view OptimizerName(OptimizerSpec::Kind kind) {
  switch (kind) {
    case OptimizerSpec::Kind::kFtrl:
      return "Ftrl";
    case OptimizerSpec::Kind::kAdagrad:
      return "Adagrad";
    case OptimizerSpec::Kind::kAdam:
      return "Adam";
    case OptimizerSpec::Kind::kRmsProp:
      return "RMSprop";
    case OptimizerSpec::Kind::kSgd:
      return "SGD";
  }
  return "";
}

namespace {

absl::StatusOr<std::unique_ptr<Optimizer>> NewRule(const OptimizerSpec& spec) {
  MUSTER_RETURN_IF_ERROR(Check(std::isfinite(spec.learning_rate) && spec.learning_rate >= 0,
                               spec.kind, "learning_rate", spec.learning_rate, "0 or more"));
  MUSTER_RETURN_IF_ERROR(Annotate(CheckSchedule(spec.schedule), OptimizerName(spec.kind)));
  switch (spec.kind) {
    case OptimizerSpec::Kind::kFtrl:
      MUSTER_RETURN_IF_ERROR(CheckFtrl(spec));
      return NewFtrl(spec);
    case OptimizerSpec::Kind::kAdagrad:
      MUSTER_RETURN_IF_ERROR(CheckAdagrad(spec));
      return NewAdagrad(spec);
    case OptimizerSpec::Kind::kAdam:
      MUSTER_RETURN_IF_ERROR(CheckAdam(spec));
      return NewAdam(spec);
    case OptimizerSpec::Kind::kRmsProp:
      MUSTER_RETURN_IF_ERROR(CheckRmsProp(spec));
      return NewRmsProp(spec);
    case OptimizerSpec::Kind::kSgd:
      MUSTER_RETURN_IF_ERROR(CheckSgd(spec));
      return NewSgd(spec);
  }
  return absl::InvalidArgumentError(StrCat("unknown optimizer ", static_cast<int>(spec.kind)));
}

}  // namespace

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
  MUSTER_RETURN_IF_ERROR(Check(std::isfinite(spec.weight_decay) && spec.weight_decay >= 0,
                               spec.kind, "weight_decay", spec.weight_decay, "0 or more"));
  const bool keras = spec.rule == OptimizerSpec::Rule::kKeras;
  if (keras && spec.lazy) {
    return absl::InvalidArgumentError(
        StrCat(OptimizerName(spec.kind), ": by Keras's rule none is lazy"));
  }
  if (spec.weight_decay == 0) return rule;
  if (spec.kind == OptimizerSpec::Kind::kFtrl && !keras) {
    return absl::InvalidArgumentError(
        "Ftrl: weight_decay would be undone, as its weights are made anew from its slots; give l2");
  }
  return NewWeightDecay(spec, std::move(rule));
}

}  // namespace muster::optim
