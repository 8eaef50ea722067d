// Dense: y = f(x W + b).
//   dx = (dy f'(y)) W'     dW = x' (dy f'(y)) + regularisation     db = column sums of dy f'(y)
#include <algorithm>

#include "muster/engine/native/layer.h"
#include "muster/math/gemm.h"
#include "muster/math/vector.h"

namespace muster::engine::native {
namespace {

constexpr int kLargeWidth = 128;  // the output width from which it pays to cut the product
constexpr int kPartUnit = 64;     // in rows of dW: whole tiles of the kernels

// The kernel, packed for the products of all workers.
class PackedKernel {
 public:
  // For products of at least call.m rows; an empty call means that nothing is packed.
  void Reserve(const math::GemmCall& call) {
    const size_t floats = math::PackedFloats(call);
    data_ = floats == 0 ? nullptr : memory_.Reserve(floats);
  }
  // Packs the worker's part.
  void Pack(const math::GemmCall& call, const Worker& worker) {
    math::PackForGemm(call, worker.index, worker.count, data_);
  }
  const float* data() const { return data_; }  // null if it is not packed

 private:
  float* data_ = nullptr;
  math::AlignedBuffer memory_;
};

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

  void Reserve(const Step& step, int workers) override {
    const int rows = step.batch->rows;
    const bool packs = workers > 1;
    const int fewest = rows / workers;  // the fewest rows of a worker
    packed_output_.Reserve(packs ? OutputProduct(step, 0, fewest) : math::GemmCall());
    packed_input_.Reserve(packs && step.training && input_->needs_gradient()
                              ? InputProduct(step, 0, fewest)
                              : math::GemmCall());
    if (!step.training) return;
    in_parts_ = TakesParts(rows, workers);
    kernel_gradient_.Reserve(in_parts_ ? 1 : workers);
    bias_gradient_.Reserve(workers);
  }

  void Pack(const Step& step, Worker& worker) override {
    if (packed_output_.data() != nullptr) packed_output_.Pack(OutputProduct(step, 0, 0), worker);
    if (packed_input_.data() != nullptr) packed_input_.Pack(InputProduct(step, 0, 0), worker);
  }

  void Forward(const Step& step, Worker& worker) override {
    const float* const kernel = Kernel(step);
    math::Gemm(OutputProduct(step, worker.begin, worker.rows()), worker.workspace);
    if (activation_ != Activation::kRelu) {
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
    if (input_->needs_gradient()) {
      math::Gemm(InputProduct(step, worker.begin, worker.rows()), worker.workspace);
    }
    if (!in_parts_) {
      MultiplyToKernelGradient(step, worker, {worker.begin, worker.end}, {0, input_->width},
                               kernel_gradient_.share(worker.index));
    }
    if (bias_ >= 0) {
      math::ColumnSums(dy, worker.rows(), output_->width, ld, false,
                       bias_gradient_.share(worker.index));
    }
  }

  void Reduce(const Step& step, Worker& worker) override {
    if (in_parts_) {
      MultiplyToKernelGradient(step, worker, {0, step.batch->rows}, GetPart(worker),
                               kernel_gradient_.share(0));
    } else {
      kernel_gradient_.Reduce(worker);
    }
    if (bias_ >= 0) bias_gradient_.Reduce(worker);
    if (l1_ != 0 || l2_ != 0) AddRegularization(step, worker);
  }

  void Emit(const Step&, GradientSink& sink) override {
    sink.Dense(kernel_, kernel_gradient_.sum());
    if (bias_ >= 0) sink.Dense(bias_, bias_gradient_.sum());
  }

 private:
  struct Range {
    int begin, end;
  };

  // Whether each worker computes some rows of dW over all rows of the batch, instead of all of dW
  // over its own rows, whose sum then must be taken. That pays if dW is large compared with the
  // output's gradient, which each worker then reads whole.
  bool TakesParts(int rows, int workers) const {
    return workers > 1 && output_->width >= kLargeWidth && input_->width >= kPartUnit * workers &&
           rows <= 2 * input_->width;
  }

  // The rows of dW that the worker computes.
  Range GetPart(const Worker& worker) const {
    const int units = (input_->width + kPartUnit - 1) / kPartUnit;
    const auto row = [&](int64_t unit) {
      return std::min(static_cast<int>(unit) * kPartUnit, input_->width);
    };
    return {row(worker.first_of(units)), row(worker.last_of(units))};
  }

  // to[columns] = x[rows][columns]' dy[rows]
  void MultiplyToKernelGradient(const Step& step, Worker& worker, Range rows, Range columns,
                                float* to) const {
    math::Gemm({.m = columns.end - columns.begin,
                .n = output_->width,
                .k = rows.end - rows.begin,
                .a = input_->value(rows.begin) + columns.begin,
                .a_row = 1,
                .a_col = input_->ld(),
                .b = output_->gradient(rows.begin),
                .ldb = output_->ld(),
                .c = to + int64_t{columns.begin} * output_->width,
                .ldc = output_->width,
                .bf16 = step.bf16},
               worker.workspace);
  }

  const float* Kernel(const Step& step) const {
    return step.weights[static_cast<size_t>(kernel_)].data;
  }

  // The product for y = f(x W + b), where f is relu or the identity; other functions are applied
  // later.
  math::GemmCall OutputProduct(const Step& step, int begin, int rows) const {
    return {.m = rows,
            .n = output_->width,
            .k = input_->width,
            .a = input_->value(begin),
            .a_row = input_->ld(),
            .b = Kernel(step),
            .ldb = output_->width,
            .c = output_->value(begin),
            .ldc = output_->ld(),
            .bias = bias_ < 0 ? nullptr : step.weights[static_cast<size_t>(bias_)].data,
            .relu = activation_ == Activation::kRelu,
            .bf16 = step.bf16,
            .packed_b = packed_output_.data()};
  }

  // The product for dx = dy W', for the columns of the input that need it.
  math::GemmCall InputProduct(const Step& step, int begin, int rows) const {
    const int first = input_->gradient_begin;
    return {.m = rows,
            .n = input_->gradient_end - first,
            .k = output_->width,
            .a = output_->gradient(begin),
            .a_row = output_->ld(),
            .b = Kernel(step) + int64_t{first} * output_->width,
            .ldb = output_->width,
            .b_transposed = true,
            .c = input_->gradient(begin) + first,
            .ldc = input_->ld(),
            .accumulate = input_->storage->sums_gradients(),
            .mask = input_->reader_masks ? input_->value(begin) + first : nullptr,
            .ldmask = input_->ld(),
            .bf16 = step.bf16,
            .packed_b = packed_input_.data()};
  }

  // Adds the regularisation to what the worker has computed.
  void AddRegularization(const Step& step, const Worker& worker) {
    const int64_t width = output_->width, n = input_->width * width;
    const Range part = GetPart(worker);
    const int64_t first = in_parts_ ? part.begin * width : worker.first_of(n);
    const int64_t last = in_parts_ ? part.end * width : worker.last_of(n);
    const float* const kernel = Kernel(step);
    const auto l1 = static_cast<float>(l1_ * step.regularization_share);
    const auto l2 = static_cast<float>(2 * l2_ * step.regularization_share);
    float* const gradient = kernel_gradient_.share(0);
    for (int64_t i = first; i < last; ++i) {
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
  bool in_parts_ = false;  // the result of TakesParts
  PackedKernel packed_output_, packed_input_;
  GradientShares kernel_gradient_, bias_gradient_;
};

}  // namespace

std::unique_ptr<Layer> NewDenseLayer(const Tensor* input, const Tensor* output,
                                     const DenseOptions& options, int kernel, int bias) {
  return std::make_unique<DenseLayer>(input, output, options, kernel, bias);
}

}  // namespace muster::engine::native
