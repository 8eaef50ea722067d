// BatchNorm: y = gamma (x - mean) / sqrt(variance + epsilon) + beta over the rows of the batch.
//
// As Keras's layer without fusing. Training uses the batch's mean and population variance: over the
// rows of all workers, over those of one worker if workers are replicas, or over those of all
// replicas (shared_sums.h). Inference uses the moving statistics.
//   xhat = (x - mean) r, r = 1 / sqrt(variance + epsilon)
//   dx = gamma r (dy - mean(dy) - xhat mean(dy xhat)); dgamma = sum dy xhat; dbeta = sum dy
// Source: Ioffe, Szegedy, "Batch Normalization" (2015); over replicas as Keras's
// BatchNormalization(synchronized=True).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "muster/engine/native/layer.h"
#include "muster/engine/native/shared_sums.h"
#include "muster/math/layers.h"

namespace muster::engine::native {
namespace {

class BatchNormLayer final : public Layer {
 public:
  BatchNormLayer(const Tensor* input, const Tensor* output, const BatchNormOptions& options,
                 BatchNormVariables variables)
      : input_(input),
        output_(output),
        epsilon_(options.epsilon),
        synchronized_(options.synchronized),
        variables_(variables) {}

  void Reserve(const Step& step, int workers) override {
    const auto width = static_cast<size_t>(input_->width);
    if (mean_.size() < width * static_cast<size_t>(workers)) {
      mean_.resize(width * static_cast<size_t>(workers));
      variance_.resize(mean_.size());
      scale_.resize(mean_.size());
      emitted_.resize(width);
    }
    for (SharedSums* sums : {&x_, &x_squares_, &dy_, &dy_xhat_}) {
      sums->Reserve(step, synchronized_, workers, input_->width);
    }
    rows_.assign(static_cast<size_t>(workers), 0);
  }

  void Forward(const Step& step, Worker& worker) override {
    const auto width = static_cast<size_t>(input_->width);
    const size_t at = static_cast<size_t>(worker.index) * width;
    const std::span<float> mean = std::span(mean_).subspan(at, width);
    const std::span<float> variance = std::span(variance_).subspan(at, width);
    if (step.training) {
      ComputeStatistics(step, worker, mean, variance);
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
    const std::span<const double> dy_mean = dy_.Mean(step, worker);
    const std::span<const double> dy_xhat_mean = dy_xhat_.Mean(step, worker);
    if (!input_->needs_gradient()) return;
    math::NormalizationGradient(Rows(worker), dy, output_->ld(), columns, dy_mean.data(),
                                dy_xhat_mean.data(), input_->storage->sums_gradients(),
                                input_->gradient(worker.begin), input_->ld());
  }

  void Emit(const Step&, GradientSink& sink) override {
    sink.Dense(variables_.gamma, ToFloats(dy_xhat_.Total()));
    sink.Dense(variables_.beta, ToFloats(dy_.Total()));
    sink.Statistic(variables_.moving_mean, CombineWorkers(mean_));
    sink.Statistic(variables_.moving_variance, CombineWorkers(variance_));
  }

 private:
  static const float* Weights(const Step& step, int variable) {
    return step.weights[static_cast<size_t>(variable)].data;
  }

  math::MatrixView Rows(const Worker& worker) const {
    return {input_->value(worker.begin), input_->ld(), worker.rows(), input_->width};
  }
  // Called after the statistics were computed.
  math::Normalization Columns(const Step& step, const Worker& worker) const {
    const size_t at = static_cast<size_t>(worker.index) * static_cast<size_t>(input_->width);
    return {.mean = mean_.data() + at,
            .scale = scale_.data() + at,
            .gamma = Weights(step, variables_.gamma),
            .beta = Weights(step, variables_.beta)};
  }

  // Computes the mean first, then the mean of squared differences.
  void ComputeStatistics(const Step& step, Worker& worker, std::span<float> mean,
                         std::span<float> variance) {
    math::AddColumns(Rows(worker), x_.Clear(worker).data());
    rows_[static_cast<size_t>(worker.index)] = worker.rows();
    const std::span<const double> x_mean = x_.Mean(step, worker);
    math::AddSquaredDistances(Rows(worker), x_mean.data(), x_squares_.Clear(worker).data());
    const std::span<const double> square_mean = x_squares_.Mean(step, worker);
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

  // Returns what the workers computed. If each has its own statistics, returns their mean weighted
  // by rows.
  std::span<const float> CombineWorkers(std::span<const float> taken) {
    if (!x_.each_for_itself()) return taken.first(emitted_.size());
    const double rows = std::accumulate(rows_.begin(), rows_.end(), 0.0);
    for (size_t j = 0; j < emitted_.size(); ++j) {
      double sum = 0;
      for (size_t i = 0; i < rows_.size(); ++i) sum += rows_[i] * taken[i * emitted_.size() + j];
      emitted_[j] = static_cast<float>(sum / std::max(rows, 1.0));
    }
    return emitted_;
  }

  const Tensor* input_;
  const Tensor* output_;
  double epsilon_;
  bool synchronized_;
  BatchNormVariables variables_;
  // The number of rows of each worker.
  std::vector<double> rows_;
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
