// L2Normalize: rows of length 1, y = x / |x|, as tf.math.l2_normalize with its epsilon of 1e-12 for
// |x|^2.
//   dx = (dy - <dy, y> y) / |x|; for a row below the epsilon dx = dy / sqrt(epsilon)
#include <cmath>

#include "muster/engine/native/layer.h"
#include "muster/math/vector.h"

namespace muster::engine::native {
namespace {

constexpr float kLeastSquare = 1e-12f;

class L2NormalizeLayer final : public Layer {
 public:
  L2NormalizeLayer(const Tensor* input, const Tensor* output) : input_(input), output_(output) {}

  void Reserve(const Step& step, int) override {
    factors_ = memory_.Reserve(static_cast<size_t>(step.batch->rows));
  }

  void Forward(const Step&, Worker& worker) override {
    for (int row = worker.begin; row < worker.end; ++row) {
      const float* const x = input_->value(row);
      float* const y = output_->value(row);
      const auto square = static_cast<float>(math::SumOfSquares(x, Width()));
      const bool is_short = square < kLeastSquare;
      const float factor = 1 / std::sqrt(is_short ? kLeastSquare : square);
      for (int j = 0; j < input_->width; ++j) y[j] = x[j] * factor;
      // negative marks a short row, whose gradient is that of a product
      factors_[row] = is_short ? -factor : factor;
    }
  }

  void Backward(const Step&, Worker& worker) override {
    if (!input_->needs_gradient()) return;
    const bool sums = input_->storage->sums_gradients();
    for (int row = worker.begin; row < worker.end; ++row) {
      const float* const y = output_->value(row);
      const float* const dy = output_->gradient(row);
      float* const dx = input_->gradient(row);
      const float along = factors_[row] < 0 ? 0 : math::Dot(dy, y, Width());
      const float factor = std::fabs(factors_[row]);
      for (int j = 0; j < input_->width; ++j) {
        const float slope = (dy[j] - along * y[j]) * factor;
        dx[j] = sums ? dx[j] + slope : slope;
      }
    }
  }

 private:
  size_t Width() const { return static_cast<size_t>(input_->width); }

  const Tensor* input_;
  const Tensor* output_;
  float* factors_ = nullptr;  // by row: 1 / |x|
  math::AlignedBuffer memory_;
};

}  // namespace

std::unique_ptr<Layer> NewL2NormalizeLayer(const Tensor* input, const Tensor* output) {
  return std::make_unique<L2NormalizeLayer>(input, output);
}

}  // namespace muster::engine::native
