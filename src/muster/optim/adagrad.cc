#include "muster/optim/adagrad.h"

#include "muster/math/vector.h"
#include "muster/optim/keras_rule.h"

namespace muster::optim {
namespace {

std::vector<SlotSpec> AdagradSlots(const OptimizerSpec& spec) {
  return {{"accumulator", static_cast<float>(spec.Get("initial_accumulator"))}};
}

class Adagrad : public Optimizer {
 public:
  explicit Adagrad(const OptimizerSpec& spec)
      : spec_(spec),
        epsilon_(static_cast<float>(spec.Get("epsilon"))),
        slots_(AdagradSlots(spec)) {}

  std::span<const SlotSpec> slots() const override { return slots_; }
  bool moves_untouched_rows() const override { return false; }

  void ApplyDense(std::span<float> weights, std::span<float* const> slots,
                  std::span<const float> gradient, int64_t step) const override {
    math::AdagradUpdate(weights.data(), slots[0], gradient.data(), gradient.size(), RuleAt(step));
  }
  void ApplyRows(std::span<float> table, int64_t cols, std::span<float* const> slots,
                 std::span<const int32_t> rows, std::span<const float> gradient,
                 int64_t step) const override {
    math::AdagradUpdateRows(table.data(), slots[0], static_cast<size_t>(cols), rows.data(),
                            rows.size(), gradient.data(), RuleAt(step));
  }

 private:
  math::AdagradRule RuleAt(int64_t step) const { return {RateAt(spec_, step), epsilon_}; }

  const OptimizerSpec spec_;
  const float epsilon_;
  const std::vector<SlotSpec> slots_;
};

struct KerasAdagrad {
  using Step = math::AdagradRule;
  static constexpr bool kMovesAllRows = false;
  const OptimizerSpec spec;
  const float epsilon = static_cast<float>(spec.Get("epsilon"));

  std::vector<SlotSpec> Slots() const { return AdagradSlots(spec); }
  Step At(int64_t step) const { return {RateAt(spec, step), epsilon}; }
  static void Update(float* w, std::span<float* const> slots, const float* g, size_t n,
                     const Step& step) {
    math::KerasAdagradUpdate(w, slots[0], g, nullptr, n, step);
  }
  static void UpdateRows(float* w, std::span<float* const> slots, size_t cols,
                         std::span<const int32_t> rows, const float* g, const Step& step) {
    math::KerasAdagradUpdateRows(w, slots[0], cols, rows.data(), rows.size(), g, step);
  }
};

std::unique_ptr<Optimizer> NewAdagrad(const OptimizerSpec& spec) {
  if (spec.rule == OptimizerSpec::Rule::kKeras) return NewKerasRule(KerasAdagrad{spec});
  return std::make_unique<Adagrad>(spec);
}

// The first update of a row must not divide by 0. Keras's rule always requires an epsilon over 0.
absl::Status CheckAdagrad(const OptimizerSpec& spec) {
  const bool keras = spec.rule == OptimizerSpec::Rule::kKeras;
  const double epsilon = spec.Get("epsilon");
  return CheckValue(epsilon > 0 || (!keras && spec.Get("initial_accumulator") > 0), spec.kind,
                    "epsilon", epsilon,
                    keras ? "over 0" : "over 0, or 0 with an initial_accumulator over 0");
}

constexpr std::string_view kAdagradClasses[] = {"Adagrad"};
constexpr OptimizerParameter kAdagradParameters[] = {
    {"epsilon", "epsilon", 1e-7, ValueRange::kNotNegative},
    {"initial_accumulator", "initial_accumulator_value", 0.1, ValueRange::kNotNegative}};

}  // namespace

constinit const OptimizerKind kAdagradKind = {.name = "adagrad",
                                              .keras_classes = kAdagradClasses,
                                              .learning_rate = 0.05,
                                              .parameters = kAdagradParameters,
                                              .decays = true,
                                              .check = CheckAdagrad,
                                              .make = NewAdagrad};

}  // namespace muster::optim
