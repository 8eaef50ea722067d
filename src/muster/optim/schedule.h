// Learning rates that depend on the step, by the formulas of tf.keras.optimizers.schedules.
//
// s counts updates from 0; r is the initial rate, n `decay_steps`.
//   constant         r
//   exponential      r decay_rate^(s / n); staircase: floor(s / n)
//   inverse_time     r / (1 + decay_rate s / n); staircase: floor(s / n)
//   polynomial       (r - end) (1 - min(s, n) / n)^power + end; cycle: n is multiplied until it is
//                    at least s
//   cosine           r ((1 - alpha) (1 + cos(pi min(s, n) / n)) / 2 + alpha)
//   cosine_restarts  periods of n, n t_mul, n t_mul^2, ... that begin at r, r m_mul, r m_mul^2, ...
//   piecewise        values[i] for boundaries[i - 1] < s <= boundaries[i]
// With warm_up_steps W > 0: for s < W, warm_up_from + (schedule(0) - warm_up_from) s / W; from W on
// schedule(s - W). This is CosineDecay's warm-up, available for any schedule.
//
// Float arithmetic, as in TensorFlow, except for the number of restarts: TensorFlow's float
// logarithm misses it by one at some of the steps where a period begins.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "muster/base/status.h"

namespace muster::optim {

struct ScheduleSpec {
  enum class Kind {
    kConstant,
    kExponential,
    kInverseTime,
    kPolynomial,
    kCosine,
    kCosineRestarts,
    kPiecewise
  } kind = Kind::kConstant;
  double decay_steps = 0;  // all but constant and piecewise; cosine_restarts: the first period
  double decay_rate = 0;   // exponential, inverse_time
  bool staircase = false;  // exponential, inverse_time
  double end = 0.0001, power = 1;   // polynomial
  bool cycle = false;               // polynomial
  double alpha = 0;                 // cosine, cosine_restarts
  double t_mul = 2, m_mul = 1;      // cosine_restarts
  std::vector<int64_t> boundaries;  // piecewise: ascending
  std::vector<double> values;       // piecewise: one more than boundaries
  int64_t warm_up_steps = 0;
  double warm_up_from = 0;
  friend bool operator==(const ScheduleSpec&, const ScheduleSpec&) = default;
};

// "constant", "exponential", ...: the words of a model file.
std::string_view ScheduleName(ScheduleSpec::Kind kind);

// INVALID_ARGUMENT names a value that is out of range.
absl::Status CheckSchedule(const ScheduleSpec& spec);

// The rate of update `step`, for a valid schedule. `initial` is values[0] for piecewise.
float LearningRateAt(double initial, const ScheduleSpec& spec, int64_t step);

// Whether some step's rate is 0 by the formula (not by underflow).
bool ReachesZero(double initial, const ScheduleSpec& spec);

}  // namespace muster::optim
