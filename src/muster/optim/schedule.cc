#include "muster/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace muster::optim {
namespace {

using ScheduleKind = ScheduleSpec::Kind;

absl::Status CheckField(bool right, std::string_view field, double value, std::string_view range) {
  if (right) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("learning_rate: ", field, " is ", value, ": it must be ", range));
}

absl::Status CheckPiecewise(const ScheduleSpec& spec) {
  if (spec.boundaries.empty() || spec.values.size() != spec.boundaries.size() + 1) {
    return absl::InvalidArgumentError(
        StrCat("learning_rate: piecewise has ", spec.boundaries.size(), " boundaries and ",
               spec.values.size(), " values: there must be one value more than boundaries"));
  }
  for (size_t i = 1; i < spec.boundaries.size(); ++i) {
    if (spec.boundaries[i] <= spec.boundaries[i - 1]) {
      return absl::InvalidArgumentError(StrCat("learning_rate: boundary ", spec.boundaries[i],
                                               " comes after ", spec.boundaries[i - 1],
                                               ": boundaries must ascend"));
    }
  }
  for (const double value : spec.values) {
    MUSTER_RETURN_IF_ERROR(
        CheckField(std::isfinite(value) && value > 0, "a value", value, "over 0"));
  }
  return absl::OkStatus();
}

float Periods(const ScheduleSpec& spec, float step) {
  const float periods = step / static_cast<float>(spec.decay_steps);
  return spec.staircase ? std::floor(periods) : periods;
}

float Polynomial(float initial, const ScheduleSpec& spec, float step) {
  auto steps = static_cast<float>(spec.decay_steps);
  if (spec.cycle) {
    if (step > 0) steps *= std::ceil(step / steps);
  } else {
    step = std::min(step, steps);
  }
  const auto end = static_cast<float>(spec.end);
  return (initial - end) * std::pow(1.0f - step / steps, static_cast<float>(spec.power)) + end;
}

// Returns the part of a cosine's half period that is left at `fraction` of it.
float HalfCosine(float fraction) {
  return 0.5f * (1.0f + std::cos(std::numbers::pi_v<float> * fraction));
}

float WithFloor(float initial, float decayed, double alpha) {
  const auto floor = static_cast<float>(alpha);
  return initial * ((1.0f - floor) * decayed + floor);
}

float CosineRestarts(float initial, const ScheduleSpec& spec, int64_t step) {
  const double periods = static_cast<double>(step) / spec.decay_steps;
  double restarts = std::floor(periods);
  double fraction = periods - restarts;
  if (spec.t_mul != 1) {
    // The k-th period ends at (t_mul^(k + 1) - 1) / (t_mul - 1) first periods.
    const auto begin = [&](double k) { return (std::pow(spec.t_mul, k) - 1) / (spec.t_mul - 1); };
    restarts =
        std::max(0.0, std::floor(std::log1p(periods * (spec.t_mul - 1)) / std::log(spec.t_mul)));
    while (begin(restarts + 1) <= periods) ++restarts;
    while (restarts > 0 && begin(restarts) > periods) --restarts;
    fraction = (periods - begin(restarts)) / std::pow(spec.t_mul, restarts);
  }
  const auto height = static_cast<float>(std::pow(spec.m_mul, restarts));
  return WithFloor(initial, height * HalfCosine(static_cast<float>(fraction)), spec.alpha);
}

float Decayed(double initial_rate, const ScheduleSpec& spec, int64_t at) {
  const auto initial = static_cast<float>(initial_rate);
  const auto step = static_cast<float>(at);
  switch (spec.kind) {
    case ScheduleKind::kConstant:
      return initial;
    case ScheduleKind::kExponential:
      return initial * std::pow(static_cast<float>(spec.decay_rate), Periods(spec, step));
    case ScheduleKind::kInverseTime:
      return initial / (1.0f + static_cast<float>(spec.decay_rate) * Periods(spec, step));
    case ScheduleKind::kPolynomial:
      return Polynomial(initial, spec, step);
    case ScheduleKind::kCosine: {
      const auto steps = static_cast<float>(spec.decay_steps);
      return WithFloor(initial, HalfCosine(std::min(step, steps) / steps), spec.alpha);
    }
    case ScheduleKind::kCosineRestarts:
      return CosineRestarts(initial, spec, at);
    case ScheduleKind::kPiecewise: {
      const auto place = std::lower_bound(spec.boundaries.begin(), spec.boundaries.end(), at);
      return static_cast<float>(spec.values[place - spec.boundaries.begin()]);
    }
  }
  return initial;
}

}  // namespace

std::string_view ScheduleName(ScheduleSpec::Kind kind) {
  switch (kind) {
    case ScheduleKind::kConstant:
      return "constant";
    case ScheduleKind::kExponential:
      return "exponential";
    case ScheduleKind::kInverseTime:
      return "inverse_time";
    case ScheduleKind::kPolynomial:
      return "polynomial";
    case ScheduleKind::kCosine:
      return "cosine";
    case ScheduleKind::kCosineRestarts:
      return "cosine_restarts";
    case ScheduleKind::kPiecewise:
      return "piecewise";
  }
  return "";
}

absl::Status CheckSchedule(const ScheduleSpec& spec) {
  const auto check = [&](std::string_view field, double value) {
    return CheckField(std::isfinite(value) && value >= 0, field, value, "0 or more");
  };
  MUSTER_RETURN_IF_ERROR(check("warm_up_steps", static_cast<double>(spec.warm_up_steps)));
  MUSTER_RETURN_IF_ERROR(check("warm_up_from", spec.warm_up_from));
  if (spec.kind == ScheduleKind::kConstant) return absl::OkStatus();
  if (spec.kind == ScheduleKind::kPiecewise) return CheckPiecewise(spec);
  MUSTER_RETURN_IF_ERROR(CheckField(std::isfinite(spec.decay_steps) && spec.decay_steps > 0,
                                    "decay_steps", spec.decay_steps, "over 0"));
  if (spec.kind == ScheduleKind::kExponential) {
    return CheckField(std::isfinite(spec.decay_rate) && spec.decay_rate > 0, "decay_rate",
                      spec.decay_rate, "over 0");
  }
  MUSTER_RETURN_IF_ERROR(check("decay_rate", spec.decay_rate));
  MUSTER_RETURN_IF_ERROR(check("end", spec.end));
  MUSTER_RETURN_IF_ERROR(check("power", spec.power));
  MUSTER_RETURN_IF_ERROR(check("m_mul", spec.m_mul));
  MUSTER_RETURN_IF_ERROR(
      CheckField(std::isfinite(spec.t_mul) && spec.t_mul >= 1, "t_mul", spec.t_mul, "1 or more"));
  return CheckField(spec.alpha >= 0 && spec.alpha <= 1, "alpha", spec.alpha, "from 0 to 1");
}

float LearningRateAt(double initial, const ScheduleSpec& spec, int64_t step) {
  if (step >= spec.warm_up_steps) return Decayed(initial, spec, step - spec.warm_up_steps);
  const auto from = static_cast<float>(spec.warm_up_from);
  const float share = static_cast<float>(step) / static_cast<float>(spec.warm_up_steps);
  return (Decayed(initial, spec, 0) - from) * share + from;
}

bool ReachesZero(double initial, const ScheduleSpec& spec) {
  if (spec.warm_up_steps > 0 && spec.warm_up_from == 0) return true;
  switch (spec.kind) {
    case ScheduleKind::kPolynomial:
      return spec.end == 0 && spec.power > 0;
    case ScheduleKind::kCosine:
      return spec.alpha == 0;
    case ScheduleKind::kCosineRestarts:
      return spec.alpha == 0 && spec.m_mul == 0;
    default:
      return initial == 0;
  }
}

}  // namespace muster::optim
