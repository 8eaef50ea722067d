// Add: the sum of two matrices.
#include "muster/engine/native/layer.h"

namespace muster::engine::native {
namespace {

class AddLayer final : public Layer {
 public:
  AddLayer(const Tensor* a, const Tensor* b, const Tensor* output)
      : a_(a), b_(b), output_(output) {}

  void Forward(const Step&, Worker& worker) override {
    for (int row = worker.begin; row < worker.end; ++row) {
      const float* const a = a_->value(row);
      const float* const b = b_->value(row);
      float* const sum = output_->value(row);
      for (int j = 0; j < output_->width; ++j) sum[j] = a[j] + b[j];
    }
  }

  void Backward(const Step&, Worker& worker) override {
    for (const Tensor* input : {a_, b_}) {
      if (!input->needs_gradient()) continue;
      const bool sums = input->storage->sums_gradients();
      for (int row = worker.begin; row < worker.end; ++row) {
        const float* const from = output_->gradient(row);
        float* const to = input->gradient(row);
        for (int j = 0; j < output_->width; ++j) to[j] = sums ? to[j] + from[j] : from[j];
      }
    }
  }

 private:
  const Tensor* a_;
  const Tensor* b_;
  const Tensor* output_;
};

}  // namespace

std::unique_ptr<Layer> NewAddLayer(const Tensor* a, const Tensor* b, const Tensor* output) {
  return std::make_unique<AddLayer>(a, b, output);
}

}  // namespace muster::engine::native
