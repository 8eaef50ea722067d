#include "muster/optim/adagrad.h"

#include "muster/math/vector.h"

namespace muster::optim {
namespace {

class Adagrad : public Optimizer {
 public:
  explicit Adagrad(const OptimizerSpec& spec)
      : spec_(spec), slots_{{"accumulator", static_cast<float>(spec.initial_accumulator)}} {}

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
  math::AdagradRule RuleAt(int64_t step) const {
    return {RateAt(spec_, step), static_cast<float>(spec_.epsilon)};
  }

  const OptimizerSpec spec_;
  const std::vector<SlotSpec> slots_;
};

}  // namespace

std::unique_ptr<Optimizer> NewAdagrad(const OptimizerSpec& spec) {
  return std::make_unique<Adagrad>(spec);
}

}  // namespace muster::optim
