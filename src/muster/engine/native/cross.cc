// Cross: the elementwise end of a cross layer: y = x0 p + x, where p = W x + b is the output of a
// dense layer.
//   dp = dy x0     dx0 = dy p     dx = dy
// Wang et al., "DCN V2: Improved Deep & Cross Network and Practical Lessons for Web-scale Learning
// to Rank Systems", WWW 2021, equation 1.
#include <cstring>

#include "muster/engine/native/layer.h"
#include "muster/math/layers.h"
#include "muster/math/vector.h"

namespace muster::engine::native {
namespace {

class CrossLayer final : public Layer {
 public:
  CrossLayer(const Tensor* x0, const Tensor* projected, const Tensor* x, const Tensor* output)
      : x0_(x0), projected_(projected), x_(x), output_(output) {}

  void Forward(const Step&, Worker& worker) override {
    const auto width = static_cast<size_t>(output_->width);
    for (int row = worker.begin; row < worker.end; ++row) {
      float* const y = output_->value(row);
      std::memcpy(y, x_->value(row), width * sizeof(float));
      math::MultiplyAddTo(x0_->value(row), projected_->value(row), y, width);
    }
  }

  void Backward(const Step&, Worker& worker) override {
    const auto width = static_cast<size_t>(output_->width);
    for (int row = worker.begin; row < worker.end; ++row) {
      const float* const dy = output_->gradient(row);
      const auto put = projected_->storage->sums_gradients() ? math::MultiplyAddTo : math::Multiply;
      put(dy, x0_->value(row), projected_->gradient(row), width);
      AddProduct(*x0_, row, dy);
      AddTo(*x_, row, dy);
    }
  }

 private:
  // Both functions write only the columns that need a gradient.
  void AddProduct(const Tensor& x0, int row, const float* dy) const {
    if (!x0.needs_gradient()) return;
    const auto [first, n] = GetRange(x0);
    const auto put = x0.storage->sums_gradients() ? math::MultiplyAddTo : math::Multiply;
    put(dy + first, projected_->value(row) + first, x0.gradient(row) + first, n);
  }

  static void AddTo(const Tensor& x, int row, const float* dy) {
    if (!x.needs_gradient()) return;
    const auto [first, n] = GetRange(x);
    float* const to = x.gradient(row) + first;
    if (x.storage->sums_gradients()) {
      math::AddTo(dy + first, to, n);
    } else {
      std::memcpy(to, dy + first, n * sizeof(float));
    }
  }

  struct Range {
    int64_t first;
    size_t count;
  };
  static Range GetRange(const Tensor& x) {
    return {x.gradient_begin, static_cast<size_t>(x.gradient_end - x.gradient_begin)};
  }

  const Tensor* x0_;
  const Tensor* projected_;
  const Tensor* x_;
  const Tensor* output_;
};

}  // namespace

std::unique_ptr<Layer> NewCrossLayer(const Tensor* x0, const Tensor* projected, const Tensor* x,
                                     const Tensor* output) {
  return std::make_unique<CrossLayer>(x0, projected, x, output);
}

}  // namespace muster::engine::native
