#include "muster/optim/sgd.h"

#include <utility>

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
  explicit Momentum(const OptimizerSpec& spec) : spec_(spec), slots_{{"momentum", 0}} {}

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
    return {RateAt(spec_, step), static_cast<float>(spec_.momentum), spec_.nesterov};
  }

  const OptimizerSpec spec_;
  const std::vector<SlotSpec> slots_;
};

// Gets the squares that another does not need.
class PastSquares : public Optimizer {
 public:
  explicit PastSquares(std::unique_ptr<Optimizer> inner) : inner_(std::move(inner)) {}

  std::span<const SlotSpec> slots() const override { return inner_->slots(); }
  bool wants_squares() const override { return true; }
  bool moves_untouched_rows() const override { return inner_->moves_untouched_rows(); }

  void ApplyDense(std::span<float> weights, std::span<float* const> slots,
                  std::span<const float> gradient, int64_t step) const override {
    inner_->ApplyDense(weights, slots, gradient, step);
  }
  void ApplyRows(std::span<float> table, int64_t cols, std::span<float* const> slots,
                 std::span<const int32_t> rows, std::span<const float> gradient,
                 int64_t step) const override {
    const auto width = static_cast<size_t>(cols);
    for (size_t i = 0; i < rows.size(); ++i) {
      inner_->ApplyRows(table, cols, slots, rows.subspan(i, 1),
                        gradient.subspan(2 * i * width, width), step);
    }
  }
  void Walk(std::span<float> table, int64_t cols, std::span<float* const> slots, int64_t first,
            int64_t last, const TouchedRows& touched, int64_t step) const override {
    inner_->Walk(table, cols, slots, first, last, touched, step);
  }

 private:
  const std::unique_ptr<Optimizer> inner_;
};

std::unique_ptr<Optimizer> NewSgd(const OptimizerSpec& spec) {
  std::unique_ptr<Optimizer> sgd;
  if (spec.momentum == 0) {
    sgd = std::make_unique<Sgd>(spec);
  } else {
    sgd = std::make_unique<Momentum>(spec);
  }
  if (spec.rule != OptimizerSpec::Rule::kKeras || !spec.squares) return sgd;
  return std::make_unique<PastSquares>(std::move(sgd));
}

absl::Status CheckSgd(const OptimizerSpec& spec) {
  if (!spec.nesterov || spec.momentum != 0) return absl::OkStatus();
  return absl::InvalidArgumentError("SGD: nesterov is a kind of momentum: give momentum over 0");
}

constexpr std::string_view kSgdClasses[] = {"SGD"};
constexpr OptimizerNumber kSgdNumbers[] = {
    {"momentum", "momentum", &OptimizerSpec::momentum, 0, ValueRange::kUpToOne}};
constexpr OptimizerFlag kSgdFlags[] = {{"nesterov", &OptimizerSpec::nesterov}};

}  // namespace

constinit const OptimizerKind kSgdKind = {.kind = OptimizerSpec::Kind::kSgd,
                                          .name = "sgd",
                                          .keras_classes = kSgdClasses,
                                          .learning_rate = 0.01,
                                          .numbers = kSgdNumbers,
                                          .flags = kSgdFlags,
                                          .decays = true,
                                          .check = CheckSgd,
                                          .make = NewSgd};

}  // namespace muster::optim
