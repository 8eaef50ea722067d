// Activations: in place on a dense layer's output, and as a layer.
#include <cmath>
#include <cstring>

#include "muster/engine/native/layer.h"

namespace muster::engine::native {
namespace {

template <typename Function>
void ForEachElement(float* values, int64_t ld, int rows, int width, Function function) {
  for (int row = 0; row < rows; ++row, values += ld) {
    for (int j = 0; j < width; ++j) values[j] = function(values[j]);
  }
}

template <typename Derivative>
void MultiplyDerivative(const float* values, int64_t ld, int rows, int width, float* gradient,
                        int64_t gradient_ld, Derivative derivative) {
  for (int row = 0; row < rows; ++row, values += ld, gradient += gradient_ld) {
    for (int j = 0; j < width; ++j) gradient[j] *= derivative(values[j]);
  }
}

class ActivationLayer final : public Layer {
 public:
  ActivationLayer(const Tensor* input, const Tensor* output, Activation activation)
      : input_(input), output_(output), activation_(activation) {}

  void Forward(const Step&, Worker& worker) override {
    const auto bytes = static_cast<size_t>(output_->width) * sizeof(float);
    for (int row = worker.begin; row < worker.end; ++row) {
      std::memcpy(output_->value(row), input_->value(row), bytes);
    }
    ApplyActivation(activation_, output_->value(worker.begin), output_->ld(), worker.rows(),
                    output_->width);
  }

  void Backward(const Step&, Worker& worker) override {
    if (!input_->needs_gradient()) return;
    ApplyActivationGradient(activation_, output_->value(worker.begin), output_->ld(), worker.rows(),
                            output_->width, output_->gradient(worker.begin), output_->ld());
    for (int row = worker.begin; row < worker.end; ++row) {
      const float* const from = output_->gradient(row);
      float* const to = input_->gradient(row);
      for (int j = 0; j < output_->width; ++j) {
        to[j] = input_->storage->sums_gradients() ? to[j] + from[j] : from[j];
      }
    }
  }

 private:
  const Tensor* input_;
  const Tensor* output_;
  Activation activation_;
};

}  // namespace

void ApplyActivation(Activation activation, float* values, int64_t ld, int rows, int width) {
  switch (activation) {
    case Activation::kNone:
      return;
    case Activation::kRelu:
      return ForEachElement(values, ld, rows, width, [](float x) { return x < 0 ? 0 : x; });
    case Activation::kTanh:
      return ForEachElement(values, ld, rows, width, [](float x) { return std::tanh(x); });
    case Activation::kSigmoid:
      return ForEachElement(values, ld, rows, width,
                            [](float x) { return 1.0f / (1.0f + std::exp(-x)); });
  }
}

void ApplyActivationGradient(Activation activation, const float* values, int64_t ld, int rows,
                             int width, float* gradient, int64_t gradient_ld) {
  switch (activation) {
    case Activation::kNone:
      return;
    case Activation::kRelu:
      return MultiplyDerivative(values, ld, rows, width, gradient, gradient_ld,
                                [](float y) { return y > 0 ? 1.0f : 0.0f; });
    case Activation::kTanh:
      return MultiplyDerivative(values, ld, rows, width, gradient, gradient_ld,
                                [](float y) { return 1.0f - y * y; });
    case Activation::kSigmoid:
      return MultiplyDerivative(values, ld, rows, width, gradient, gradient_ld,
                                [](float y) { return y * (1.0f - y); });
  }
}

std::unique_ptr<Layer> NewActivationLayer(const Tensor* input, const Tensor* output,
                                          Activation activation) {
  return std::make_unique<ActivationLayer>(input, output, activation);
}

}  // namespace muster::engine::native
