#include "muster/optim/sgd.h"

#include "muster/math/vector.h"

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
  explicit Momentum(const OptimizerSpec& spec) : spec_(spec), slots_{{"momentum", 0}} {}

  std::span<const SlotSpec> slots() const override { return slots_; }
  bool moves_untouched_rows() const override { return false; }

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

 private:
  math::MomentumRule RuleAt(int64_t step) const {
    return {RateAt(spec_, step), static_cast<float>(spec_.momentum), spec_.nesterov};
  }

  const OptimizerSpec spec_;
  const std::vector<SlotSpec> slots_;
};

}  // namespace

std::unique_ptr<Optimizer> NewSgd(const OptimizerSpec& spec) {
  if (spec.momentum == 0) return std::make_unique<Sgd>(spec);
  return std::make_unique<Momentum>(spec);
}

}  // namespace muster::optim
