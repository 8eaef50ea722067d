// Dense: y = f(x W + b).
//   dx = (dy f'(y)) W'     dW = x' (dy f'(y)) + regularisation     db = column sums of dy f'(y)
#include "muster/engine/native/layer.h"
#include "muster/math/gemm.h"
#include "muster/math/vector.h"

namespace muster::engine::native {
namespace {

class DenseLayer final : public Layer {
 public:
  DenseLayer(const Tensor* input, const Tensor* output, const DenseOptions& options, int kernel,
             int bias)
      : input_(input),
        output_(output),
        activation_(options.activation),
        l1_(options.l1),
        l2_(options.l2),
        kernel_(kernel),
        bias_(bias),
        kernel_gradient_(int64_t{input->width} * output->width),
        bias_gradient_(output->width) {}

  void Reserve(int, int workers, bool training) override {
    if (!training) return;
    kernel_gradient_.Reserve(workers);
    bias_gradient_.Reserve(workers);
  }

  void Forward(const Step& step, Worker& worker) override {
    const float* const kernel = step.weights[static_cast<size_t>(kernel_)].data;
    const bool relu = activation_ == Activation::kRelu;
    math::Gemm({.m = worker.rows(),
                .n = output_->width,
                .k = input_->width,
                .a = input_->value(worker.begin),
                .a_row = input_->ld(),
                .b = kernel,
                .ldb = output_->width,
                .c = output_->value(worker.begin),
                .ldc = output_->ld(),
                .bias = bias_ < 0 ? nullptr : step.weights[static_cast<size_t>(bias_)].data,
                .relu = relu,
                .bf16 = step.bf16},
               worker.workspace);
    if (!relu) {
      ApplyActivation(activation_, output_->value(worker.begin), output_->ld(), worker.rows(),
                      output_->width);
    }
    if (step.training && worker.index == 0) {
      const auto n = static_cast<size_t>(input_->width) * static_cast<size_t>(output_->width);
      if (l1_ != 0) worker.regularization += l1_ * math::SumOfMagnitudes(kernel, n);
      if (l2_ != 0) worker.regularization += l2_ * math::SumOfSquares(kernel, n);
    }
  }

  void Backward(const Step& step, Worker& worker) override {
    float* const dy = output_->gradient(worker.begin);
    const int64_t ld = output_->ld();
    if (!output_->reader_masks) {
      ApplyActivationGradient(activation_, output_->value(worker.begin), ld, worker.rows(),
                              output_->width, dy, ld);
    }
    if (input_->needs_gradient()) GiveInputGradient(step, worker, dy);
    math::Gemm({.m = input_->width,
                .n = output_->width,
                .k = worker.rows(),
                .a = input_->value(worker.begin),
                .a_row = 1,
                .a_col = input_->ld(),
                .b = dy,
                .ldb = ld,
                .c = kernel_gradient_.share(worker.index),
                .ldc = output_->width,
                .bf16 = step.bf16},
               worker.workspace);
    if (bias_ >= 0) {
      math::ColumnSums(dy, worker.rows(), output_->width, ld, false,
                       bias_gradient_.share(worker.index));
    }
  }

  void Reduce(const Step& step, Worker& worker) override {
    kernel_gradient_.Reduce(worker);
    if (bias_ >= 0) bias_gradient_.Reduce(worker);
    if (l1_ != 0 || l2_ != 0) AddRegularization(step, worker);
  }

  void Emit(const Step&, GradientSink& sink) override {
    sink.Dense(kernel_, kernel_gradient_.sum());
    if (bias_ >= 0) sink.Dense(bias_, bias_gradient_.sum());
  }

 private:
  // For the columns of the input that need it.
  void GiveInputGradient(const Step& step, Worker& worker, const float* dy) {
    const int first = input_->gradient_begin;
    math::Gemm(
        {.m = worker.rows(),
         .n = input_->gradient_end - first,
         .k = output_->width,
         .a = dy,
         .a_row = output_->ld(),
         .b = step.weights[static_cast<size_t>(kernel_)].data + int64_t{first} * output_->width,
         .ldb = output_->width,
         .b_transposed = true,
         .c = input_->gradient(worker.begin) + first,
         .ldc = input_->ld(),
         .accumulate = input_->storage->sums_gradients(),
         .mask = input_->reader_masks ? input_->value(worker.begin) + first : nullptr,
         .ldmask = input_->ld(),
         .bf16 = step.bf16},
        worker.workspace);
  }

  void AddRegularization(const Step& step, const Worker& worker) {
    const int64_t n = int64_t{input_->width} * output_->width;
    const float* const kernel = step.weights[static_cast<size_t>(kernel_)].data;
    const auto l1 = static_cast<float>(l1_ * step.regularization_share);
    const auto l2 = static_cast<float>(2 * l2_ * step.regularization_share);
    float* const gradient = kernel_gradient_.share(0);
    for (int64_t i = worker.first_of(n); i < worker.last_of(n); ++i) {
      const float w = kernel[i];
      const float sign = static_cast<float>(w > 0) - static_cast<float>(w < 0);
      gradient[i] += l1 * sign + l2 * w;
    }
  }

  const Tensor* input_;
  const Tensor* output_;
  Activation activation_;
  double l1_, l2_;
  int kernel_, bias_;
  GradientShares kernel_gradient_, bias_gradient_;
};

}  // namespace

std::unique_ptr<Layer> NewDenseLayer(const Tensor* input, const Tensor* output,
                                     const DenseOptions& options, int kernel, int bias) {
  return std::make_unique<DenseLayer>(input, output, options, kernel, bias);
}

}  // namespace muster::engine::native
