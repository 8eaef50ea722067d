#include "muster/optim/sgd.h"

#include "muster/math/vector.h"
#include "muster/optim/keras_rule.h"

namespace muster::optim {
namespace {

class Sgd : public Optimizer {
 public:
  explicit Sgd(const OptimizerSpec& spec) : spec_(spec) {}

  std::span<const SlotSpec> slots() const override { return {}; }
  bool moves_untouched_rows() const override { return false; }

  void ApplyDense(std::span<float> weights, std::span<float* const>,
                  std::span<const float> gradient, int64_t step) const override {
    math::Axpy(-RateAt(spec_, step), gradient.data(), weights.data(), weights.size());
  }
  void ApplyRows(std::span<float> table, int64_t cols, std::span<float* const>,
                 std::span<const int32_t> rows, std::span<const float> gradient,
                 int64_t step) const override {
    math::SgdUpdateRows(table.data(), static_cast<size_t>(cols), rows.data(), rows.size(),
                        gradient.data(), RateAt(spec_, step));
  }

 private:
  const OptimizerSpec spec_;
};

class Momentum : public Optimizer {
 public:
  explicit Momentum(const OptimizerSpec& spec)
      : spec_(spec),
        momentum_(static_cast<float>(spec.Get("momentum"))),
        nesterov_(spec.Get("nesterov") != 0),
        slots_{{"momentum", 0}} {}

  std::span<const SlotSpec> slots() const override { return slots_; }
  bool moves_untouched_rows() const override { return spec_.rule == OptimizerSpec::Rule::kKeras; }

  void ApplyDense(std::span<float> weights, std::span<float* const> slots,
                  std::span<const float> gradient, int64_t step) const override {
    math::MomentumUpdate(weights.data(), slots[0], gradient.data(), gradient.size(), RuleAt(step));
  }
  void ApplyRows(std::span<float> table, int64_t cols, std::span<float* const> slots,
                 std::span<const int32_t> rows, std::span<const float> gradient,
                 int64_t step) const override {
    math::MomentumUpdateRows(table.data(), slots[0], static_cast<size_t>(cols), rows.data(),
                             rows.size(), gradient.data(), RuleAt(step));
  }
  void Walk(std::span<float> table, int64_t cols, std::span<float* const> slots, int64_t first,
            int64_t last, const TouchedRows& touched, int64_t step) const override {
    if (!moves_untouched_rows()) return;
    WalkWithoutGradient(
        table, cols, slots, first, last, touched,
        [rule = RuleAt(step)](float* w, std::span<float* const> at, const float* zeros, size_t n) {
          math::MomentumUpdate(w, at[0], zeros, n, rule);
        });
  }

 private:
  math::MomentumRule RuleAt(int64_t step) const {
    return {RateAt(spec_, step), momentum_, nesterov_};
  }

  const OptimizerSpec spec_;
  const float momentum_;
  const bool nesterov_;
  const std::vector<SlotSpec> slots_;
};

std::unique_ptr<Optimizer> NewSgd(const OptimizerSpec& spec) {
  if (spec.Get("momentum") == 0) return std::make_unique<Sgd>(spec);
  return std::make_unique<Momentum>(spec);
}

absl::Status CheckSgd(const OptimizerSpec& spec) {
  // Keras ignores nesterov without momentum.
  const bool keras = spec.rule == OptimizerSpec::Rule::kKeras;
  if (keras || spec.Get("nesterov") == 0 || spec.Get("momentum") != 0) return absl::OkStatus();
  return absl::InvalidArgumentError("SGD: nesterov is a form of momentum: give momentum over 0");
}

constexpr std::string_view kSgdClasses[] = {"SGD"};
constexpr OptimizerParameter kSgdParameters[] = {{"momentum", "momentum", 0, ValueRange::kUpToOne},
                                                 {"nesterov", "nesterov", 0, ValueRange::kFlag}};

}  // namespace

constinit const OptimizerKind kSgdKind = {.name = "sgd",
                                          .keras_classes = kSgdClasses,
                                          .learning_rate = 0.01,
                                          .parameters = kSgdParameters,
                                          .decays = true,
                                          .check = CheckSgd,
                                          .make = NewSgd};

}  // namespace muster::optim
