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
#include "muster/math/layers.h"

namespace muster::engine::native {
namespace {

// Per column sums of doubles that workers take apart and read together: shares, then totals and
// means. Every worker adds the shares up for itself, in the same order.
class SharedSums {
 public:
  void Reserve(int workers, int width) {
    width_ = static_cast<size_t>(width);
    for (std::vector<double>* all : {&shares_, &totals_, &means_}) {
      all->resize(static_cast<size_t>(workers) * width_);
    }
  }
  // The worker's own, set to 0.
  std::span<double> Clear(const Worker& worker) {
    const std::span<double> share = PartOf(worker, shares_);
    std::fill(share.begin(), share.end(), 0.0);
    return share;
  }
  // The total over all workers' shares by `rows`, 0 of none. Waits for them; each must call it.
  std::span<const double> Mean(const Worker& worker, double rows) {
    worker.crew->Barrier();
    const std::span<double> total = PartOf(worker, totals_), mean = PartOf(worker, means_);
    std::fill(total.begin(), total.end(), 0.0);
    for (int other = 0; other < worker.count; ++other) {
      const double* const share = shares_.data() + static_cast<size_t>(other) * width_;
      for (size_t j = 0; j < width_; ++j) total[j] += share[j];
    }
    for (size_t j = 0; j < width_; ++j) mean[j] = total[j] / std::max(rows, 1.0);
    return mean;
  }
  std::span<const double> total() const { return std::span(totals_).first(width_); }

 private:
  std::span<double> PartOf(const Worker& worker, std::vector<double>& all) const {
    return std::span(all).subspan(static_cast<size_t>(worker.index) * width_, width_);
  }

  size_t width_ = 0;
  std::vector<double> shares_, totals_, means_;
};

class BatchNormLayer final : public Layer {
 public:
  BatchNormLayer(const Tensor* input, const Tensor* output, const BatchNormOptions& options,
                 BatchNormVariables variables)
      : input_(input), output_(output), epsilon_(options.epsilon), variables_(variables) {}

  void Reserve(const Step&, int workers) override {
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
    math::Normalize(Rows(worker), Columns(step, worker), output_->value(worker.begin),
                    output_->ld());
  }

  void Backward(const Step& step, Worker& worker) override {
    const math::Normalization columns = Columns(step, worker);
    const float* const dy = output_->gradient(worker.begin);
    const std::span<double> dy_share = dy_.Clear(worker), dy_xhat_share = dy_xhat_.Clear(worker);
    math::AddNormalizationSums(Rows(worker), dy, output_->ld(), columns, dy_share.data(),
                               dy_xhat_share.data());
    const double rows = step.batch->rows;
    const std::span<const double> dy_mean = dy_.Mean(worker, rows);
    const std::span<const double> dy_xhat_mean = dy_xhat_.Mean(worker, rows);
    if (!input_->needs_gradient()) return;
    math::NormalizationGradient(Rows(worker), dy, output_->ld(), columns, dy_mean.data(),
                                dy_xhat_mean.data(), input_->storage->sums_gradients(),
                                input_->gradient(worker.begin), input_->ld());
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

  math::MatrixView Rows(const Worker& worker) const {
    return {input_->value(worker.begin), input_->ld(), worker.rows(), input_->width};
  }
  // After the statistics are taken.
  math::Normalization Columns(const Step& step, const Worker& worker) const {
    const size_t at = static_cast<size_t>(worker.index) * static_cast<size_t>(input_->width);
    return {.mean = mean_.data() + at,
            .scale = scale_.data() + at,
            .gamma = Weights(step, variables_.gamma),
            .beta = Weights(step, variables_.beta)};
  }

  // Mean first, then the mean of squared differences.
  void TakeStatistics(const Step& step, Worker& worker, std::span<float> mean,
                      std::span<float> variance) {
    math::AddColumns(Rows(worker), x_.Clear(worker).data());
    const double rows = step.batch->rows;
    const std::span<const double> x_mean = x_.Mean(worker, rows);
    math::AddSquaredDistances(Rows(worker), x_mean.data(), x_squares_.Clear(worker).data());
    const std::span<const double> square_mean = x_squares_.Mean(worker, rows);
    for (size_t j = 0; j < mean.size(); ++j) {
      mean[j] = static_cast<float>(x_mean[j]);
      variance[j] = static_cast<float>(square_mean[j]);
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
