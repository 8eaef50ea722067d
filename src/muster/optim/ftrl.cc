#include "muster/optim/ftrl.h"

#include <cmath>

#include "muster/math/vector.h"
#include "muster/optim/keras_rule.h"

namespace muster::optim {
namespace {

// An OptimizerSpec and the values of its parameters.
struct FtrlSpec {
  explicit FtrlSpec(const OptimizerSpec& given) : spec(given) {}
  const OptimizerSpec spec;
  const float l1 = static_cast<float>(spec.Get("l1")), l2 = static_cast<float>(spec.Get("l2"));
  const float l2_shrinkage = static_cast<float>(spec.Get("l2_shrinkage"));
  const float beta = static_cast<float>(spec.Get("beta"));
  const float accumulator = static_cast<float>(spec.Get("initial_accumulator"));
  const bool is_root = spec.Get("learning_rate_power") == -0.5;
  const float exponent = -static_cast<float>(spec.Get("learning_rate_power"));

  math::FtrlRule RuleAt(int64_t step) const {
    math::FtrlRule rule;
    rule.learning_rate = RateAt(spec, step);
    rule.l1 = l1;
    rule.l2 = l2 + beta / (2.0f * rule.learning_rate);  // in float arithmetic, as in Keras
    rule.l2_shrinkage = l2_shrinkage;
    return rule;
  }
  std::vector<SlotSpec> Slots() const { return {{"accumulator", accumulator}, {"linear", 0}}; }
};

// If squares are given, the accumulator adds them instead of g^2. For tables of one column,
// TensorFlow's SparseApplyFtrl adds to `z` in another order.
template <bool kOneColumn, bool kSquares>
void UpdateFtrlOfAnyPower(float* w, float* acc, float* z, const float* g, const float* squares,
                          size_t n, const math::FtrlRule& rule, float exponent) {
  for (size_t i = 0; i < n; ++i) {
    const float new_acc = acc[i] + (kSquares ? squares[i] : g[i] * g[i]);
    const float power = std::pow(new_acc, exponent);
    const float shrunk_g = g[i] + 2.0f * rule.l2_shrinkage * w[i];
    const float sigma = (power - std::pow(acc[i], exponent)) / rule.learning_rate * w[i];
    z[i] = kOneColumn ? z[i] + shrunk_g - sigma : z[i] + (shrunk_g - sigma);
    const float shrunk = std::copysign(rule.l1, z[i]) - z[i];
    w[i] =
        std::fabs(z[i]) > rule.l1 ? shrunk / (power / rule.learning_rate + 2.0f * rule.l2) : 0.0f;
    acc[i] = new_acc;
  }
}

// The base of the rules for all learning rate powers.
class FtrlBase : public Optimizer {
 public:
  explicit FtrlBase(const OptimizerSpec& spec) : spec_(spec), slots_(spec_.Slots()) {}

  std::span<const SlotSpec> slots() const override { return slots_; }
  bool moves_untouched_rows() const override { return false; }

 protected:
  const FtrlSpec spec_;
  const std::vector<SlotSpec> slots_;
};

// The rule for learning_rate_power -0.5, which uses square roots.
class FtrlRoot : public FtrlBase {
 public:
  using FtrlBase::FtrlBase;

  void ApplyDense(std::span<float> weights, std::span<float* const> slots,
                  std::span<const float> gradient, int64_t step) const override {
    math::FtrlUpdate(weights.data(), slots[1], slots[0], gradient.data(), gradient.size(),
                     spec_.RuleAt(step));
  }
  void ApplyRows(std::span<float> table, int64_t cols, std::span<float* const> slots,
                 std::span<const int32_t> rows, std::span<const float> gradient,
                 int64_t step) const override {
    math::FtrlUpdateRows(table.data(), slots[1], slots[0], static_cast<size_t>(cols), rows.data(),
                         rows.size(), gradient.data(), spec_.RuleAt(step));
  }
};

class FtrlAnyPower : public FtrlBase {
 public:
  using FtrlBase::FtrlBase;

  void ApplyDense(std::span<float> weights, std::span<float* const> slots,
                  std::span<const float> gradient, int64_t step) const override {
    UpdateFtrlOfAnyPower<false, false>(weights.data(), slots[0], slots[1], gradient.data(), nullptr,
                                       gradient.size(), spec_.RuleAt(step), spec_.exponent);
  }
  void ApplyRows(std::span<float> table, int64_t cols, std::span<float* const> slots,
                 std::span<const int32_t> rows, std::span<const float> gradient,
                 int64_t step) const override {
    const math::FtrlRule rule = spec_.RuleAt(step);
    const auto update =
        cols == 1 ? &UpdateFtrlOfAnyPower<true, false> : &UpdateFtrlOfAnyPower<false, false>;
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t at = rows[i] * cols;
      update(table.data() + at, slots[0] + at, slots[1] + at, gradient.data() + i * cols, nullptr,
             static_cast<size_t>(cols), rule, spec_.exponent);
    }
  }
};

struct KerasFtrl {
  using Step = math::FtrlRule;
  static constexpr bool kMovesAllRows = true;
  const FtrlSpec spec;

  std::vector<SlotSpec> Slots() const { return spec.Slots(); }
  // After the first step a row without a gradient has the weights that its slots determine, unless
  // these change with the step or something else moves the weights.
  bool Rests(int64_t step) const {
    const ScheduleSpec& schedule = spec.spec.schedule;
    return step > 0 && schedule.kind == ScheduleSpec::Kind::kConstant &&
           schedule.warm_up_steps == 0 && spec.l2_shrinkage == 0 && spec.spec.weight_decay == 0;
  }
  Step At(int64_t step) const { return spec.RuleAt(step); }
  void Update(float* w, std::span<float* const> slots, const float* g, size_t n,
              const Step& step) const {
    if (spec.is_root) return math::KerasFtrlUpdate(w, slots[1], slots[0], g, nullptr, n, step);
    UpdateFtrlOfAnyPower<false, false>(w, slots[0], slots[1], g, nullptr, n, step, spec.exponent);
  }
  void UpdateRows(float* w, std::span<float* const> slots, size_t cols,
                  std::span<const int32_t> rows, const float* g, const Step& step) const {
    if (spec.is_root) {
      return math::KerasFtrlUpdateRows(w, slots[1], slots[0], cols, rows.data(), rows.size(), g,
                                       step);
    }
    for (const int32_t row : rows) {
      const size_t at = static_cast<size_t>(row) * cols;
      UpdateFtrlOfAnyPower<false, true>(w + at, slots[0] + at, slots[1] + at, g, g + cols, cols,
                                        step, spec.exponent);
      g += 2 * cols;
    }
  }
};

std::unique_ptr<Optimizer> NewFtrl(const OptimizerSpec& spec) {
  if (spec.rule == OptimizerSpec::Rule::kKeras) return NewKerasRule(KerasFtrl{FtrlSpec(spec)});
  if (FtrlSpec(spec).is_root) return std::make_unique<FtrlRoot>(spec);
  return std::make_unique<FtrlAnyPower>(spec);
}

absl::Status CheckFtrl(const OptimizerSpec& spec) {
  if (spec.learning_rate == 0) {
    return absl::InvalidArgumentError(
        "Ftrl divides by the learning rate, which is 0: give a rate over 0, or another optimizer");
  }
  if (ReachesZero(spec.learning_rate, spec.schedule)) {
    return absl::InvalidArgumentError(
        StrCat("Ftrl divides by the learning rate, and this ", ScheduleName(spec.schedule.kind),
               " schedule reaches 0: give alpha, end or warm_up_from a value over 0"));
  }
  return absl::OkStatus();
}

constexpr std::string_view kFtrlClasses[] = {"Ftrl"};
constexpr OptimizerParameter kFtrlParameters[] = {
    {"l1", "l1_regularization_strength", 0, ValueRange::kNotNegative},
    {"l2", "l2_regularization_strength", 0, ValueRange::kNotNegative},
    {"l2_shrinkage", "l2_shrinkage_regularization_strength", 0, ValueRange::kNotNegative},
    {"learning_rate_power", "learning_rate_power", -0.5, ValueRange::kNotPositive},
    {"beta", "beta", 0, ValueRange::kNotNegative},  // added to 2 * l2 as TensorFlow's `beta / lr`
    {"initial_accumulator", "initial_accumulator_value", 0.1, ValueRange::kNotNegative}};

}  // namespace

constinit const OptimizerKind kFtrlKind = {.name = "ftrl",
                                           .keras_classes = kFtrlClasses,
                                           .learning_rate = 0.05,
                                           .parameters = kFtrlParameters,
                                           .decays = false,
                                           .check = CheckFtrl,
                                           .make = NewFtrl};

}  // namespace muster::optim
