// Dropout: in training each element is 0 with probability `rate`, else x / (1 - rate).
//
// Element (row, column) of the batch has its own number in the stream of (seed, step, replica,
// layer), so that the mask does not depend on how rows are divided among workers.
#include <cstring>

#include "muster/base/random.h"
#include "muster/engine/native/layer.h"
#include "muster/math/layers.h"

namespace muster::engine::native {
namespace {

class DropoutLayer final : public Layer {
 public:
  DropoutLayer(const Tensor* input, const Tensor* output, double rate, int ordinal)
      : input_(input), output_(output), rate_(rate), ordinal_(static_cast<uint32_t>(ordinal)) {}

  void Reserve(const Step& step, int) override {
    if (!step.training) return;
    factors_ =
        memory_.Reserve(static_cast<size_t>(step.batch->rows) * static_cast<size_t>(input_->width));
  }

  void Forward(const Step& step, Worker& worker) override {
    const int width = input_->width;
    if (!step.training) {
      for (int row = worker.begin; row < worker.end; ++row) {
        std::memcpy(output_->value(row), input_->value(row),
                    static_cast<size_t>(width) * sizeof(float));
      }
      return;
    }
    const RandomStream random(step.context.seed, RandomPurpose::kDropout,
                              static_cast<uint64_t>(step.context.step),
                              step.context.replica << 12 | ordinal_);
    const math::RandomPlace place{{random.key()[0], random.key()[1]},
                                  {random.words()[0], random.words()[1]}};
    const auto row_length = static_cast<size_t>(width);
    const auto first = static_cast<size_t>(worker.begin) * row_length;
    math::DropoutFactors(place, first, static_cast<size_t>(worker.rows()) * row_length,
                         static_cast<uint32_t>(rate_ * 0x1p32), static_cast<float>(1 / (1 - rate_)),
                         Factors(worker.begin));
    for (int row = worker.begin; row < worker.end; ++row) {
      math::Multiply(input_->value(row), Factors(row), output_->value(row), row_length);
    }
  }

  void Backward(const Step&, Worker& worker) override {
    if (!input_->needs_gradient()) return;
    const auto width = static_cast<size_t>(input_->width);
    const bool sums = input_->storage->sums_gradients();
    for (int row = worker.begin; row < worker.end; ++row) {
      (sums ? math::MultiplyAddTo : math::Multiply)(output_->gradient(row), Factors(row),
                                                    input_->gradient(row), width);
    }
  }

 private:
  float* Factors(int row) const { return factors_ + int64_t{row} * input_->width; }

  const Tensor* input_;
  const Tensor* output_;
  double rate_;
  uint32_t ordinal_;
  float* factors_ = nullptr;
  math::AlignedBuffer memory_;
};

}  // namespace

std::unique_ptr<Layer> NewDropoutLayer(const Tensor* input, const Tensor* output, double rate,
                                       int ordinal) {
  return std::make_unique<DropoutLayer>(input, output, rate, ordinal);
}

}  // namespace muster::engine::native
