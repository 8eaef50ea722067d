// Dropout: in training each element is 0 with probability `rate`, else x / (1 - rate).
//
// Element (row, column) of the batch has a number of its own in the stream of (seed, step, replica,
// layer), so that the mask does not depend on how rows are dealt to workers.
#include <cstring>

#include "muster/base/random.h"
#include "muster/engine/native/layer.h"

namespace muster::engine::native {
namespace {

class DropoutLayer final : public Layer {
 public:
  DropoutLayer(const Tensor* input, const Tensor* output, double rate, int ordinal)
      : input_(input), output_(output), rate_(rate), ordinal_(static_cast<uint32_t>(ordinal)) {}

  void Reserve(int rows, int, bool training) override {
    if (!training) return;
    factors_ = memory_.Reserve(static_cast<size_t>(rows) * static_cast<size_t>(input_->width));
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
    RandomStream random(step.context.seed, RandomPurpose::kDropout,
                        static_cast<uint64_t>(step.context.step),
                        step.context.replica << 12 | ordinal_);
    random.Seek(static_cast<uint64_t>(worker.begin) * static_cast<uint64_t>(width));
    const auto dropped_below = static_cast<uint64_t>(rate_ * 0x1p32);
    // Looked up, not branched on: nobody can predict it.
    const float factors[2] = {0, static_cast<float>(1 / (1 - rate_))};
    float* factor = Factors(worker.begin);
    for (int row = worker.begin; row < worker.end; ++row, factor += width) {
      const float* const x = input_->value(row);
      float* const y = output_->value(row);
      for (int j = 0; j < width; ++j) {
        factor[j] = factors[random.Next32() >= dropped_below];
        y[j] = x[j] * factor[j];
      }
    }
  }

  void Backward(const Step&, Worker& worker) override {
    if (!input_->needs_gradient()) return;
    const int width = input_->width;
    const bool sums = input_->storage->sums_gradients();
    const float* factor = Factors(worker.begin);
    for (int row = worker.begin; row < worker.end; ++row, factor += width) {
      const float* const dy = output_->gradient(row);
      float* const dx = input_->gradient(row);
      for (int j = 0; j < width; ++j) {
        dx[j] = sums ? dx[j] + dy[j] * factor[j] : dy[j] * factor[j];
      }
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
