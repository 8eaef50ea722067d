#include "muster/optim/adam.h"

#include <cmath>

#include "muster/math/vector.h"
#include "muster/optim/keras_rule.h"

namespace muster::optim {
namespace {

// An OptimizerSpec and the values of its parameters.
struct AdamSpec {
  explicit AdamSpec(const OptimizerSpec& given) : spec(given) {}
  const OptimizerSpec spec;
  const double beta1 = spec.Get("beta1"), beta2 = spec.Get("beta2");
  const float epsilon = static_cast<float>(spec.Get("epsilon"));

  // The learning rate of update `step`, corrected. It is computed with floats, as in TensorFlow:
  // the correction's rounding is large in the first steps.
  float RateAt(int64_t step) const {
    const auto t = static_cast<float>(step + 1);
    const auto b1 = static_cast<float>(beta1), b2 = static_cast<float>(beta2);
    return optim::RateAt(spec, step) * std::sqrt(1.0f - std::pow(b2, t)) / (1.0f - std::pow(b1, t));
  }
};

class Adam : public Optimizer {
 public:
  explicit Adam(const OptimizerSpec& spec)
      : spec_(spec),
        slots_{{"m", 0}, {"v", 0}},
        beta1_(static_cast<float>(spec_.beta1)),
        beta2_(static_cast<float>(spec_.beta2)),
        lazy_(spec.lazy) {}

  std::span<const SlotSpec> slots() const override { return slots_; }
  bool moves_untouched_rows() const override { return !lazy_; }

  void ApplyDense(std::span<float> weights, std::span<float* const> slots,
                  std::span<const float> gradient, int64_t step) const override {
    math::AdamUpdate(weights.data(), slots[0], slots[1], gradient.data(), gradient.size(),
                     RuleAt(step));
  }

  void ApplyRows(std::span<float> table, int64_t cols, std::span<float* const> slots,
                 std::span<const int32_t> rows, std::span<const float> gradient,
                 int64_t step) const override {
    const math::AdamRule rule = RuleAt(step);
    if (lazy_) {
      math::AdamUpdateRows(table.data(), slots[0], slots[1], static_cast<size_t>(cols), rows.data(),
                           rows.size(), gradient.data(), rule);
      return;
    }
    math::AdamSparseUpdateRows(table.data(), slots[0], slots[1], static_cast<size_t>(cols),
                               rows.data(), rows.size(), gradient.data(), rule);
  }

  void Walk(std::span<float> table, int64_t cols, std::span<float* const> slots, int64_t first,
            int64_t last, const TouchedRows& touched, int64_t step) const override {
    if (lazy_) return;
    const math::AdamRule rule = RuleAt(step);
    touched.ForEachUntouchedRun(first, last, [&](int64_t begin, int64_t count) {
      const int64_t at = begin * cols;
      math::AdamDecay(table.data() + at, slots[0] + at, slots[1] + at,
                      static_cast<size_t>(count * cols), rule);
    });
  }

 private:
  math::AdamRule RuleAt(int64_t step) const {
    return {spec_.RateAt(step), beta1_, beta2_, spec_.epsilon};
  }

  const AdamSpec spec_;
  const std::vector<SlotSpec> slots_;
  const float beta1_, beta2_;
  const bool lazy_;
};

struct KerasAdam {
  using Step = math::KerasAdamRule;
  static constexpr bool kMovesAllRows = true;
  const AdamSpec spec;

  static std::vector<SlotSpec> Slots() { return {{"momentum", 0}, {"velocity", 0}}; }
  static bool Rests(int64_t /*step*/) { return false; }
  Step At(int64_t step) const {
    return {spec.RateAt(step), static_cast<float>(1 - spec.beta1),
            static_cast<float>(1 - spec.beta2), spec.epsilon};
  }
  static void Update(float* w, std::span<float* const> slots, const float* g, size_t n,
                     const Step& step) {
    math::KerasAdamUpdate(w, slots[0], slots[1], g, nullptr, n, step);
  }
  static void UpdateRows(float* w, std::span<float* const> slots, size_t cols,
                         std::span<const int32_t> rows, const float* g, const Step& step) {
    math::KerasAdamUpdateRows(w, slots[0], slots[1], cols, rows.data(), rows.size(), g, step);
  }
};

std::unique_ptr<Optimizer> NewAdam(const OptimizerSpec& spec) {
  if (spec.rule == OptimizerSpec::Rule::kKeras) return NewKerasRule(KerasAdam{AdamSpec(spec)});
  return std::make_unique<Adam>(spec);
}

constexpr std::string_view kAdamClasses[] = {"Adam", "AdamW"};
constexpr OptimizerParameter kAdamParameters[] = {
    {"beta1", "beta_1", 0.9, ValueRange::kBelowOne},
    {"beta2", "beta_2", 0.999, ValueRange::kBelowOne},
    {"epsilon", "epsilon", 1e-7, ValueRange::kPositive}};

}  // namespace

constinit const OptimizerKind kAdamKind = {.name = "adam",
                                           .keras_classes = kAdamClasses,
                                           .learning_rate = 0.001,
                                           .parameters = kAdamParameters,
                                           .decays = true,
                                           .check = nullptr,
                                           .make = NewAdam};

}  // namespace muster::optim
