// BatchNorm: y = gamma (x - mean) / sqrt(variance + epsilon) + beta over the rows of the batch.
//
// Keras's layer, not fused: training uses the batch's mean and population variance, over all
// workers' rows; inference the moving ones.
//   xhat = (x - mean) r, r = 1 / sqrt(variance + epsilon)
//   dx = gamma r (dy - mean(dy) - xhat mean(dy xhat)); dgamma = sum dy xhat; dbeta = sum dy
// Source: Ioffe, Szegedy, "Batch Normalization" (2015).
#include <algorithm>
#include <cmath>

#include "muster/engine/native/layer.h"

namespace muster::engine::native {
namespace {

// Per column sums of doubles that workers take apart and read together: shares, then totals. Every
// worker adds the shares up for itself, in the same order.
class SharedSums {
 public:
  void Reserve(int workers, int width) {
    width_ = static_cast<size_t>(width);
    shares_.resize(static_cast<size_t>(workers) * width_);
    totals_.resize(shares_.size());
  }
  // The worker's own, set to 0.
  std::span<double> Clear(const Worker& worker) {
    const auto share = std::span(shares_).subspan(At(worker.index), width_);
    std::fill(share.begin(), share.end(), 0.0);
    return share;
  }
  // Waits for all workers' shares; each must call it.
  std::span<const double> Total(const Worker& worker) {
    worker.crew->Barrier();
    const auto total = std::span(totals_).subspan(At(worker.index), width_);
    std::fill(total.begin(), total.end(), 0.0);
    for (int other = 0; other < worker.count; ++other) {
      const double* const share = shares_.data() + At(other);
      for (size_t j = 0; j < width_; ++j) total[j] += share[j];
    }
    return total;
  }
  std::span<const double> total() const { return std::span(totals_).first(width_); }

 private:
  size_t At(int worker) const { return static_cast<size_t>(worker) * width_; }

  size_t width_ = 0;
  std::vector<double> shares_, totals_;
};

class BatchNormLayer final : public Layer {
 public:
  BatchNormLayer(const Tensor* input, const Tensor* output, const BatchNormOptions& options,
                 BatchNormVariables variables)
      : input_(input), output_(output), epsilon_(options.epsilon), variables_(variables) {}

  void Reserve(int, int workers, bool) override {
    const auto width = static_cast<size_t>(input_->width);
    if (mean_.size() < width * static_cast<size_t>(workers)) {
      mean_.resize(width * static_cast<size_t>(workers));
      variance_.resize(mean_.size());
      scale_.resize(mean_.size());
      emitted_.resize(width);
    }
    for (SharedSums* sums : {&x_, &x_squares_, &dy_, &dy_xhat_}) {
      sums->Reserve(workers, input_->width);
    }
  }

  void Forward(const Step& step, Worker& worker) override {
    const auto width = static_cast<size_t>(input_->width);
    const size_t at = static_cast<size_t>(worker.index) * width;
    const std::span<float> mean = std::span(mean_).subspan(at, width);
    const std::span<float> variance = std::span(variance_).subspan(at, width);
    if (step.training) {
      TakeStatistics(step, worker, mean, variance);
    } else {
      std::copy_n(Weights(step, variables_.moving_mean), width, mean.begin());
      std::copy_n(Weights(step, variables_.moving_variance), width, variance.begin());
    }
    const std::span<float> scale = std::span(scale_).subspan(at, width);
    for (size_t j = 0; j < width; ++j) {
      scale[j] = static_cast<float>(1 / std::sqrt(double{variance[j]} + epsilon_));
    }
    const float* const gamma = Weights(step, variables_.gamma);
    const float* const beta = Weights(step, variables_.beta);
    for (int row = worker.begin; row < worker.end; ++row) {
      const float* const x = input_->value(row);
      float* const y = output_->value(row);
      for (size_t j = 0; j < width; ++j) y[j] = (x[j] - mean[j]) * scale[j] * gamma[j] + beta[j];
    }
  }

  void Backward(const Step& step, Worker& worker) override {
    const auto width = static_cast<size_t>(input_->width);
    const size_t at = static_cast<size_t>(worker.index) * width;
    const float* const mean = mean_.data() + at;
    const float* const scale = scale_.data() + at;
    const std::span<double> dy_share = dy_.Clear(worker), dy_xhat_share = dy_xhat_.Clear(worker);
    for (int row = worker.begin; row < worker.end; ++row) {
      const float* const x = input_->value(row);
      const float* const dy = output_->gradient(row);
      for (size_t j = 0; j < width; ++j) {
        dy_share[j] += dy[j];
        dy_xhat_share[j] += double{dy[j]} * ((x[j] - mean[j]) * scale[j]);
      }
    }
    const std::span<const double> dy_sum = dy_.Total(worker);
    const std::span<const double> dy_xhat_sum = dy_xhat_.Total(worker);
    if (!input_->needs_gradient()) return;
    const float* const gamma = Weights(step, variables_.gamma);
    const double rows = step.batch->rows;
    const bool sums = input_->storage->sums_gradients();
    for (int row = worker.begin; row < worker.end; ++row) {
      const float* const x = input_->value(row);
      const float* const dy = output_->gradient(row);
      float* const dx = input_->gradient(row);
      for (size_t j = 0; j < width; ++j) {
        const float xhat = (x[j] - mean[j]) * scale[j];
        const auto centred =
            static_cast<float>(dy[j] - dy_sum[j] / rows - xhat * (dy_xhat_sum[j] / rows));
        const float value = gamma[j] * scale[j] * centred;
        dx[j] = sums ? dx[j] + value : value;
      }
    }
  }

  void Emit(const Step&, GradientSink& sink) override {
    const auto width = static_cast<size_t>(input_->width);
    sink.Dense(variables_.gamma, ToFloats(dy_xhat_.total()));
    sink.Dense(variables_.beta, ToFloats(dy_.total()));
    sink.Statistic(variables_.moving_mean, std::span(mean_).first(width));
    sink.Statistic(variables_.moving_variance, std::span(variance_).first(width));
  }

 private:
  static const float* Weights(const Step& step, int variable) {
    return step.weights[static_cast<size_t>(variable)].data;
  }

  // Mean first, then the mean of squared differences.
  void TakeStatistics(const Step& step, Worker& worker, std::span<float> mean,
                      std::span<float> variance) {
    const std::span<double> x_share = x_.Clear(worker);
    for (int row = worker.begin; row < worker.end; ++row) {
      const float* const x = input_->value(row);
      for (size_t j = 0; j < x_share.size(); ++j) x_share[j] += x[j];
    }
    const std::span<const double> x_sum = x_.Total(worker);
    const std::span<double> squares_share = x_squares_.Clear(worker);
    const double rows = step.batch->rows;
    for (int row = worker.begin; row < worker.end; ++row) {
      const float* const x = input_->value(row);
      for (size_t j = 0; j < x_sum.size(); ++j) {
        const double difference = x[j] - x_sum[j] / rows;
        squares_share[j] += difference * difference;
      }
    }
    const std::span<const double> squares_sum = x_squares_.Total(worker);
    for (size_t j = 0; j < mean.size(); ++j) {
      mean[j] = static_cast<float>(x_sum[j] / rows);
      variance[j] = static_cast<float>(squares_sum[j] / rows);
    }
  }

  std::span<const float> ToFloats(std::span<const double> values) {
    std::transform(values.begin(), values.end(), emitted_.begin(),
                   [](double value) { return static_cast<float>(value); });
    return emitted_;
  }

  const Tensor* input_;
  const Tensor* output_;
  double epsilon_;
  BatchNormVariables variables_;
  // One copy for each worker, all the same.
  std::vector<float> mean_, variance_, scale_;
  SharedSums x_, x_squares_, dy_, dy_xhat_;
  std::vector<float> emitted_;
};

}  // namespace

std::unique_ptr<Layer> NewBatchNormLayer(const Tensor* input, const Tensor* output,
                                         const BatchNormOptions& options,
                                         BatchNormVariables variables) {
  return std::make_unique<BatchNormLayer>(input, output, options, variables);
}

}  // namespace muster::engine::native
