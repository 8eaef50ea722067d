#include "muster/optim/adagrad.h"

#include "muster/math/vector.h"

namespace muster::optim {
namespace {

class Adagrad : public Optimizer {
 public:
  explicit Adagrad(const OptimizerSpec& spec)
      : slots_{{"accumulator", static_cast<float>(spec.initial_accumulator)}},
        rule_{static_cast<float>(spec.learning_rate), static_cast<float>(spec.epsilon)} {}

  std::span<const SlotSpec> slots() const override { return slots_; }
  bool moves_untouched_rows() const override { return false; }

  void ApplyDense(std::span<float> weights, std::span<float* const> slots,
                  std::span<const float> gradient, int64_t) const override {
    math::AdagradUpdate(weights.data(), slots[0], gradient.data(), gradient.size(), rule_);
  }
  void ApplyRows(std::span<float> table, int64_t cols, std::span<float* const> slots,
                 std::span<const int32_t> rows, std::span<const float> gradient,
                 int64_t) const override {
    math::AdagradUpdateRows(table.data(), slots[0], static_cast<size_t>(cols), rows.data(),
                            rows.size(), gradient.data(), rule_);
  }

 private:
  const std::vector<SlotSpec> slots_;
  const math::AdagradRule rule_;
};

}  // namespace

std::unique_ptr<Optimizer> NewAdagrad(const OptimizerSpec& spec) {
  return std::make_unique<Adagrad>(spec);
}

}  // namespace muster::optim
