#include "muster/optim/optimizer.h"

#include <cmath>

#include "muster/optim/adagrad.h"
#include "muster/optim/adam.h"
#include "muster/optim/ftrl.h"

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

}  // namespace

std::string_view OptimizerName(OptimizerSpec::Kind kind) {
  switch (kind) {
    case OptimizerSpec::Kind::kFtrl:
      return "Ftrl";
    case OptimizerSpec::Kind::kAdagrad:
      return "Adagrad";
    case OptimizerSpec::Kind::kAdam:
      return "Adam";
  }
  return "";
}

absl::StatusOr<std::unique_ptr<Optimizer>> NewOptimizer(const OptimizerSpec& spec) {
  MUSTER_RETURN_IF_ERROR(Check(std::isfinite(spec.learning_rate) && spec.learning_rate > 0,
                               spec.kind, "learning_rate", spec.learning_rate, "over 0"));
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
  }
  return absl::InvalidArgumentError(StrCat("unknown optimizer ", static_cast<int>(spec.kind)));
}

}  // namespace muster::optim
