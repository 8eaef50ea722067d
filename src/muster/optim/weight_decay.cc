#include "muster/optim/weight_decay.h"

#include <algorithm>
#include <utility>

#include "muster/math/vector.h"

namespace muster::optim {
namespace {

// The decay and the optimizer walk one block of this size after the other, so that it stays in the
// L2 cache.
constexpr int64_t kBlockFloats = 32 * 1024;

class WeightDecay : public Optimizer {
 public:
  WeightDecay(const OptimizerSpec& spec, std::unique_ptr<Optimizer> inner)
      : spec_(spec), inner_(std::move(inner)) {}

  std::span<const SlotSpec> slots() const override { return inner_->slots(); }
  bool wants_squares() const override { return inner_->wants_squares(); }
  bool moves_untouched_rows() const override {
    return !spec_.lazy || inner_->moves_untouched_rows();
  }

  void ApplyDense(std::span<float> weights, std::span<float* const> slots,
                  std::span<const float> gradient, int64_t step) const override {
    Decay(weights.data(), weights.size(), step);
    inner_->ApplyDense(weights, slots, gradient, step);
  }

  void ApplyRows(std::span<float> table, int64_t cols, std::span<float* const> slots,
                 std::span<const int32_t> rows, std::span<const float> gradient,
                 int64_t step) const override {
    if (spec_.lazy) {
      for (const int32_t row : rows) {
        Decay(table.data() + row * cols, static_cast<size_t>(cols), step);
      }
    }
    inner_->ApplyRows(table, cols, slots, rows, gradient, step);
  }

  void Walk(std::span<float> table, int64_t cols, std::span<float* const> slots, int64_t first,
            int64_t last, const TouchedRows& touched, int64_t step) const override {
    if (spec_.lazy) return;
    const int64_t rows_a_block = std::max<int64_t>(1, kBlockFloats / cols);
    for (int64_t begin = first; begin < last; begin += rows_a_block) {
      const int64_t end = std::min(last, begin + rows_a_block);
      Decay(table.data() + begin * cols, static_cast<size_t>((end - begin) * cols), step);
      inner_->Walk(table, cols, slots, begin, end, touched, step);
    }
  }

 private:
  // The weights are not multiplied by 1 - weight_decay * rate: as a float it would have few digits
  // of the decay.
  void Decay(float* weights, size_t n, int64_t step) const {
    const float share = static_cast<float>(spec_.weight_decay) * RateAt(spec_, step);
    math::Axpy(-share, weights, weights, n);
  }

  const OptimizerSpec spec_;
  const std::unique_ptr<Optimizer> inner_;
};

}  // namespace

std::unique_ptr<Optimizer> NewWeightDecay(const OptimizerSpec& spec,
                                          std::unique_ptr<Optimizer> inner) {
  return std::make_unique<WeightDecay>(spec, std::move(inner));
}

}  // namespace muster::optim
