#include "muster/optim/rms_prop.h"

#include "muster/math/vector.h"
#include "muster/optim/keras_rule.h"

namespace muster::optim {
namespace {

// An OptimizerSpec and the values of its parameters.
struct RmsPropSpec {
  explicit RmsPropSpec(const OptimizerSpec& given) : spec(given) {}
  const OptimizerSpec spec;
  const double rho = spec.Get("rho"), momentum = spec.Get("momentum");
  const double epsilon = spec.Get("epsilon");
  const bool centered = spec.Get("centered") != 0;
};

// The slots of a rule, and the index of each.
class RmsPropSlots {
 public:
  RmsPropSlots(const RmsPropSpec& spec, const char* squares, const char* mean)
      : specs_{{squares, 0}} {
    if (spec.momentum > 0) {
      momentum_ = static_cast<int>(specs_.size());
      specs_.push_back({"momentum", 0});
    }
    if (spec.centered) {
      mean_ = static_cast<int>(specs_.size());
      specs_.push_back({mean, 0});
    }
  }
  const std::vector<SlotSpec>& specs() const { return specs_; }
  bool has_momentum() const { return momentum_ >= 0; }
  // Null if the rule has no such slot.
  float* Momentum(std::span<float* const> slots) const { return Of(slots, momentum_); }
  float* Mean(std::span<float* const> slots) const { return Of(slots, mean_); }

 private:
  static float* Of(std::span<float* const> slots, int place) {
    return place < 0 ? nullptr : slots[place];
  }
  std::vector<SlotSpec> specs_;
  int momentum_ = -1, mean_ = -1;  // indexes in specs_
};

class RmsProp : public Optimizer {
 public:
  explicit RmsProp(const OptimizerSpec& spec) : spec_(spec), slots_(spec_, "rms", "mg") {}

  std::span<const SlotSpec> slots() const override { return slots_.specs(); }
  bool moves_untouched_rows() const override { return !spec_.spec.lazy && !slots_.has_momentum(); }

  void ApplyDense(std::span<float> weights, std::span<float* const> slots,
                  std::span<const float> gradient, int64_t step) const override {
    math::RmsPropUpdate(weights.data(), slots[0], slots_.Momentum(slots), slots_.Mean(slots),
                        gradient.data(), gradient.size(), RuleAt(step));
  }

  void ApplyRows(std::span<float> table, int64_t cols, std::span<float* const> slots,
                 std::span<const int32_t> rows, std::span<const float> gradient,
                 int64_t step) const override {
    math::RmsPropUpdateRows(table.data(), slots[0], slots_.Momentum(slots), slots_.Mean(slots),
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
  math::RmsPropRule RuleAt(int64_t step) const {
    return {RateAt(spec_.spec, step), static_cast<float>(spec_.rho),
            static_cast<float>(spec_.momentum), static_cast<float>(spec_.epsilon)};
  }

  const RmsPropSpec spec_;
  const RmsPropSlots slots_;
};

struct KerasRmsProp {
  using Step = math::KerasRmsPropRule;
  static constexpr bool kMovesAllRows = true;
  const RmsPropSpec spec;
  const RmsPropSlots slots{spec, "velocity", "average_gradient"};

  const std::vector<SlotSpec>& Slots() const { return slots.specs(); }
  static bool Rests(int64_t /*step*/) { return false; }
  Step At(int64_t step) const {
    return {RateAt(spec.spec, step), static_cast<float>(spec.rho), static_cast<float>(1 - spec.rho),
            static_cast<float>(spec.momentum), static_cast<float>(spec.epsilon)};
  }
  void Update(float* w, std::span<float* const> all, const float* g, size_t n,
              const Step& step) const {
    math::KerasRmsPropUpdate(w, all[0], slots.Momentum(all), slots.Mean(all), g, nullptr, n, step);
  }
  void UpdateRows(float* w, std::span<float* const> all, size_t cols, std::span<const int32_t> rows,
                  const float* g, const Step& step) const {
    math::KerasRmsPropUpdateRows(w, all[0], slots.Momentum(all), slots.Mean(all), cols, rows.data(),
                                 rows.size(), g, step);
  }
};

std::unique_ptr<Optimizer> NewRmsProp(const OptimizerSpec& spec) {
  if (spec.rule == OptimizerSpec::Rule::kKeras)
    return NewKerasRule(KerasRmsProp{RmsPropSpec(spec)});
  return std::make_unique<RmsProp>(spec);
}

constexpr std::string_view kRmsPropClasses[] = {"RMSprop"};
constexpr OptimizerParameter kRmsPropParameters[] = {
    {"rho", "rho", 0.9, ValueRange::kBelowOne},
    {"momentum", "momentum", 0, ValueRange::kUpToOne},
    {"epsilon", "epsilon", 1e-7, ValueRange::kPositive},
    {"centered", "centered", 0, ValueRange::kFlag}};

}  // namespace

constinit const OptimizerKind kRmsPropKind = {.name = "rmsprop",
                                              .keras_classes = kRmsPropClasses,
                                              .learning_rate = 0.001,
                                              .parameters = kRmsPropParameters,
                                              .decays = true,
                                              .check = nullptr,
                                              .make = NewRmsProp};

}  // namespace muster::optim
