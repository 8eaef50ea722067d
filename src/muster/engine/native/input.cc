// Input: a dense column of the batch as a node.
#include <cstring>

#include "muster/engine/native/layer.h"

namespace muster::engine::native {
namespace {

class DenseInputLayer final : public Layer {
 public:
  DenseInputLayer(int dense, const Tensor* output) : dense_(dense), output_(output) {}

  void Forward(const Step& step, Worker& worker) override {
    const int width = output_->width;
    const float* from = step.batch->dense[static_cast<size_t>(dense_)].values.data() +
                        static_cast<int64_t>(worker.begin) * width;
    float* to = output_->value(worker.begin);
    const int64_t ld = output_->ld();
    if (width == 1) {
      for (int i = 0; i < worker.rows(); ++i) to[i * ld] = from[i];
      return;
    }
    for (int i = 0; i < worker.rows(); ++i, from += width, to += ld) {
      std::memcpy(to, from, static_cast<size_t>(width) * sizeof(float));
    }
  }

  void Backward(const Step&, Worker&) override {}

 private:
  int dense_;
  const Tensor* output_;
};

}  // namespace

std::unique_ptr<Layer> NewDenseInputLayer(int dense, const Tensor* output) {
  return std::make_unique<DenseInputLayer>(dense, output);
}

}  // namespace muster::engine::native
