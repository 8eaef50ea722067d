#include "muster/optim/past_squares.h"

#include <utility>

namespace muster::optim {
namespace {

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

}  // namespace

std::unique_ptr<Optimizer> NewPastSquares(std::unique_ptr<Optimizer> inner) {
  return std::make_unique<PastSquares>(std::move(inner));
}

}  // namespace muster::optim
