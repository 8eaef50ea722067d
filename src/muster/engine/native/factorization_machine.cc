// FactorizationMachine: the sum over all pairs of fields of the products of their vectors.
//   y = sum over i < j of <v_i, v_j> = 0.5 sum over d of ((sum_i v_id)^2 - sum_i v_id^2)
//   dv_i = dy (sum_j v_j - v_i)
// Steffen Rendle, "Factorization Machines", ICDM 2010, lemma 3.1.
#include "muster/engine/native/layer.h"

namespace muster::engine::native {
namespace {

class FactorizationMachineLayer final : public Layer {
 public:
  FactorizationMachineLayer(std::vector<const Tensor*> fields, const Tensor* output)
      : fields_(std::move(fields)), output_(output), width_(fields_.front()->width) {}

  void Reserve(const Step& step, int) override {
    const auto floats = static_cast<size_t>(step.batch->rows) * static_cast<size_t>(width_);
    sums_ = sum_memory_.Reserve(floats);
    squares_ = square_memory_.Reserve(floats);
  }

  void Forward(const Step&, Worker& worker) override {
    for (int row = worker.begin; row < worker.end; ++row) {
      float* const sums = sums_ + int64_t{row} * width_;
      float* const squares = squares_ + int64_t{row} * width_;
      for (int d = 0; d < width_; ++d) sums[d] = squares[d] = 0;
      for (const Tensor* const field : fields_) {
        const float* const v = field->value(row);
        for (int d = 0; d < width_; ++d) {
          sums[d] += v[d];
          squares[d] += v[d] * v[d];
        }
      }
      float y = 0;
      for (int d = 0; d < width_; ++d) y += sums[d] * sums[d] - squares[d];
      *output_->value(row) = 0.5f * y;
    }
  }

  void Backward(const Step&, Worker& worker) override {
    for (int row = worker.begin; row < worker.end; ++row) {
      const float dy = *output_->gradient(row);
      const float* const sums = sums_ + int64_t{row} * width_;
      for (const Tensor* const field : fields_) {
        if (!field->needs_gradient()) continue;
        const float* const v = field->value(row);
        float* const dv = field->gradient(row);
        if (field->storage->sums_gradients()) {
          for (int d = 0; d < width_; ++d) dv[d] += dy * (sums[d] - v[d]);
        } else {
          for (int d = 0; d < width_; ++d) dv[d] = dy * (sums[d] - v[d]);
        }
      }
    }
  }

 private:
  const std::vector<const Tensor*> fields_;
  const Tensor* output_;
  const int width_;
  float* sums_ = nullptr;  // rows x width_: the sums of the fields' vectors
  float* squares_ = nullptr;
  math::AlignedBuffer sum_memory_, square_memory_;
};

}  // namespace

std::unique_ptr<Layer> NewFactorizationMachineLayer(std::vector<const Tensor*> fields,
                                                    const Tensor* output) {
  return std::make_unique<FactorizationMachineLayer>(std::move(fields), output);
}

}  // namespace muster::engine::native
