#include "muster/optim/adam.h"

#include <cmath>

#include "muster/math/vector.h"

namespace muster::optim {
namespace {

class Adam : public Optimizer {
 public:
  explicit Adam(const OptimizerSpec& spec)
      : slots_{{"m", 0}, {"v", 0}},
        learning_rate_(static_cast<float>(spec.learning_rate)),
        beta1_(static_cast<float>(spec.beta1)),
        beta2_(static_cast<float>(spec.beta2)),
        epsilon_(static_cast<float>(spec.epsilon)),
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
    math::Scale(beta1_, slots[0], table.size());
    math::Scale(beta2_, slots[1], table.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t at = rows[i] * cols;
      AddMoments(slots[0] + at, slots[1] + at, gradient.data() + i * cols,
                 static_cast<size_t>(cols));
    }
    MoveAll(table, slots[0], slots[1], rule);
  }

 private:
  // In float arithmetic, as TensorFlow: the correction's rounding is large in the first steps.
  math::AdamRule RuleAt(int64_t step) const {
    const auto t = static_cast<float>(step + 1);
    math::AdamRule rule{0, beta1_, beta2_, epsilon_};
    rule.rate =
        learning_rate_ * std::sqrt(1.0f - std::pow(beta2_, t)) / (1.0f - std::pow(beta1_, t));
    return rule;
  }

  void AddMoments(float* m, float* v, const float* g, size_t n) const {
    for (size_t i = 0; i < n; ++i) {
      m[i] += g[i] * (1.0f - beta1_);
      v[i] += g[i] * g[i] * (1.0f - beta2_);
    }
  }

  static void MoveAll(std::span<float> weights, const float* __restrict m,
                      const float* __restrict v, const math::AdamRule& rule) {
    float* __restrict w = weights.data();
    const float rate = rule.rate, epsilon = rule.epsilon;
    for (size_t i = 0; i < weights.size(); ++i) {
      w[i] -= rate * m[i] / (std::sqrt(v[i]) + epsilon);
    }
  }

  const std::vector<SlotSpec> slots_;
  const float learning_rate_, beta1_, beta2_, epsilon_;
  const bool lazy_;
};

}  // namespace

std::unique_ptr<Optimizer> NewAdam(const OptimizerSpec& spec) {
  return std::make_unique<Adam>(spec);
}

}  // namespace muster::optim
