#include "muster/optim/ftrl.h"

#include <cmath>

#include "muster/math/vector.h"

namespace muster::optim {
namespace {

math::FtrlRule MakeFtrlRule(const OptimizerSpec& spec) {
  math::FtrlRule rule;
  rule.learning_rate = static_cast<float>(spec.learning_rate);
  rule.l1 = static_cast<float>(spec.l1);
  // In float arithmetic, as Keras adds beta.
  rule.l2 =
      static_cast<float>(spec.l2) + static_cast<float>(spec.beta) / (2.0f * rule.learning_rate);
  rule.l2_shrinkage = static_cast<float>(spec.l2_shrinkage);
  return rule;
}

// What every learning rate power shares.
class FtrlBase : public Optimizer {
 public:
  explicit FtrlBase(const OptimizerSpec& spec)
      : slots_{{"accumulator", static_cast<float>(spec.initial_accumulator)}, {"linear", 0}},
        rule_(MakeFtrlRule(spec)) {}

  std::span<const SlotSpec> slots() const override { return slots_; }
  bool moves_untouched_rows() const override { return false; }

 protected:
  const std::vector<SlotSpec> slots_;
  const math::FtrlRule rule_;
};

// learning_rate_power -0.5: square roots.
class FtrlRoot : public FtrlBase {
 public:
  using FtrlBase::FtrlBase;

  void ApplyDense(std::span<float> weights, std::span<float* const> slots,
                  std::span<const float> gradient, int64_t) const override {
    math::FtrlUpdate(weights.data(), slots[1], slots[0], gradient.data(), gradient.size(), rule_);
  }
  void ApplyRows(std::span<float> table, int64_t cols, std::span<float* const> slots,
                 std::span<const int32_t> rows, std::span<const float> gradient,
                 int64_t) const override {
    math::FtrlUpdateRows(table.data(), slots[1], slots[0], static_cast<size_t>(cols), rows.data(),
                         rows.size(), gradient.data(), rule_);
  }
};

class FtrlAnyPower : public FtrlBase {
 public:
  explicit FtrlAnyPower(const OptimizerSpec& spec)
      : FtrlBase(spec), exponent_(-static_cast<float>(spec.learning_rate_power)) {}

  void ApplyDense(std::span<float> weights, std::span<float* const> slots,
                  std::span<const float> gradient, int64_t) const override {
    Update(weights.data(), slots[0], slots[1], gradient.data(), gradient.size());
  }
  void ApplyRows(std::span<float> table, int64_t cols, std::span<float* const> slots,
                 std::span<const int32_t> rows, std::span<const float> gradient,
                 int64_t) const override {
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t at = rows[i] * cols;
      Update(table.data() + at, slots[0] + at, slots[1] + at, gradient.data() + i * cols,
             static_cast<size_t>(cols));
    }
  }

 private:
  void Update(float* w, float* acc, float* z, const float* g, size_t n) const {
    for (size_t i = 0; i < n; ++i) {
      const float new_acc = acc[i] + g[i] * g[i];
      const float power = std::pow(new_acc, exponent_);
      z[i] += g[i] + 2.0f * rule_.l2_shrinkage * w[i] -
              (power - std::pow(acc[i], exponent_)) / rule_.learning_rate * w[i];
      const float shrunk = std::copysign(rule_.l1, z[i]) - z[i];
      w[i] = std::fabs(z[i]) > rule_.l1 ? shrunk / (power / rule_.learning_rate + 2.0f * rule_.l2)
                                        : 0.0f;
      acc[i] = new_acc;
    }
  }

  const float exponent_;
};

}  // namespace

std::unique_ptr<Optimizer> NewFtrl(const OptimizerSpec& spec) {
  if (spec.learning_rate_power == -0.5) return std::make_unique<FtrlRoot>(spec);
  return std::make_unique<FtrlAnyPower>(spec);
}

}  // namespace muster::optim
