#include "muster/optim/rms_prop.h"

#include "muster/math/vector.h"

namespace muster::optim {
namespace {

class RmsProp : public Optimizer {
 public:
  explicit RmsProp(const OptimizerSpec& spec) : spec_(spec), slots_{{"rms", 0}} {
    if (spec.momentum > 0) {
      momentum_ = static_cast<int>(slots_.size());
      slots_.push_back({"momentum", 0});
    }
    if (spec.centered) {
      mean_ = static_cast<int>(slots_.size());
      slots_.push_back({"mg", 0});
    }
  }

  std::span<const SlotSpec> slots() const override { return slots_; }
  bool moves_untouched_rows() const override { return !spec_.lazy && momentum_ < 0; }

  void ApplyDense(std::span<float> weights, std::span<float* const> slots,
                  std::span<const float> gradient, int64_t step) const override {
    math::RmsPropUpdate(weights.data(), slots[0], SlotOf(slots, momentum_), SlotOf(slots, mean_),
                        gradient.data(), gradient.size(), RuleAt(step));
  }

  void ApplyRows(std::span<float> table, int64_t cols, std::span<float* const> slots,
                 std::span<const int32_t> rows, std::span<const float> gradient,
                 int64_t step) const override {
    math::RmsPropUpdateRows(table.data(), slots[0], SlotOf(slots, momentum_), SlotOf(slots, mean_),
                            static_cast<size_t>(cols), rows.data(), rows.size(), gradient.data(),
                            RuleAt(step));
  }

  void Walk(std::span<float> /*table*/, int64_t cols, std::span<float* const> slots, int64_t first,
            int64_t last, const TouchedRows& touched, int64_t step) const override {
    if (!moves_untouched_rows()) return;
    const math::RmsPropRule rule = RuleAt(step);
    touched.ForEachUntouchedRun(first, last, [&](int64_t begin, int64_t count) {
      for (float* const slot : slots) {
        math::Scale(rule.rho, slot + begin * cols, static_cast<size_t>(count * cols));
      }
    });
  }

 private:
  static float* SlotOf(std::span<float* const> slots, int place) {
    return place < 0 ? nullptr : slots[place];
  }
  math::RmsPropRule RuleAt(int64_t step) const {
    return {RateAt(spec_, step), static_cast<float>(spec_.rho), static_cast<float>(spec_.momentum),
            static_cast<float>(spec_.epsilon)};
  }

  const OptimizerSpec spec_;
  std::vector<SlotSpec> slots_;
  int momentum_ = -1, mean_ = -1;  // places in slots_
};

}  // namespace

std::unique_ptr<Optimizer> NewRmsProp(const OptimizerSpec& spec) {
  return std::make_unique<RmsProp>(spec);
}

}  // namespace muster::optim
