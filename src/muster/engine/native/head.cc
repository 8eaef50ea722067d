#include "muster/engine/native/head.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace muster::engine::native {
namespace {

struct LossAndSlope {
  float loss, slope;  // slope: dloss/dlogit
};

LossAndSlope SigmoidCrossEntropy(float x, float label) {
  const float e = std::exp(-std::fabs(x));
  const float positive_part = x < 0 ? 0 : x;  // keeps NaN
  const float sigmoid = (x < 0 ? e : 1.0f) / (1.0f + e);
  return {positive_part - x * label + std::log1p(e), sigmoid - label};
}

// Labels as the spec says.
class HeadOfSpec : public Head {
 public:
  explicit HeadOfSpec(const HeadSpec& spec) : spec_(spec) {}
  int logits_dimension() const override { return spec_.logits_dimension(); }
  int labels_dimension() const override { return spec_.labels_dimension(); }
  double LossScale(double rows) const override { return spec_.LossScale(rows); }

  absl::Status CheckLabels(std::span<const float> labels) const override {
    std::string why;
    const int row = FindBadLabel(spec_, labels, &why);
    if (row < 0) return absl::OkStatus();
    return absl::InvalidArgumentError(StrCat("row ", row, ": label ", why));
  }

 protected:
  const HeadSpec spec_;
};

LossAndSlope SquaredError(float x, float label) {
  return {(x - label) * (x - label), 2 * (x - label)};
}

LossAndSlope PoissonLoss(float x, float label) {
  const float mean = std::exp(x);
  float loss = mean - x * label;
  if (label > 1) {
    loss +=
        label * std::log(label) - label + 0.5f * std::log(2 * std::numbers::pi_v<float> * label);
  }
  return {loss, mean - label};
}

LossAndSlope LogNormalLoss(float x, float label) {
  constexpr float kVariance = std::numbers::ln2_v<float>;
  const float log_label = std::log(label);
  const float distance = log_label - x + kVariance / 2;
  const float constant = 0.5f * std::log(2 * std::numbers::pi_v<float> * kVariance);
  return {log_label + constant + distance * distance / (2 * kVariance), -distance / kVariance};
}

// A loss of each logit by itself, the mean over a row: all heads but multi-class.
template <LossAndSlope (*kLoss)(float x, float label)>
class MeanHead final : public HeadOfSpec {
 public:
  explicit MeanHead(const HeadSpec& spec)
      : HeadOfSpec(spec), width_(static_cast<size_t>(spec.logits_dimension())) {}

  void Loss(std::span<const float> logits, std::span<const float> labels,
            std::span<const float> weights, float scale, double* loss_sum,
            std::span<float> gradient) const override {
    const float share = 1.0f / static_cast<float>(width_);
    for (size_t i = 0; i < logits.size(); ++i) {
      const float weight = (weights.empty() ? 1 : weights[i / width_]) * share;
      const LossAndSlope one = kLoss(logits[i], labels[i]);
      *loss_sum += static_cast<double>(weight) * one.loss;
      if (!gradient.empty()) gradient[i] = scale * weight * one.slope;
    }
  }

 private:
  const size_t width_;
};

class SoftmaxHead final : public HeadOfSpec {
 public:
  explicit SoftmaxHead(const HeadSpec& spec)
      : HeadOfSpec(spec), classes_(static_cast<size_t>(spec.classes)) {}

  void Loss(std::span<const float> logits, std::span<const float> labels,
            std::span<const float> weights, float scale, double* loss_sum,
            std::span<float> gradient) const override {
    for (size_t row = 0; row < labels.size(); ++row) {
      const std::span<const float> x = logits.subspan(row * classes_, classes_);
      const auto label = static_cast<size_t>(labels[row]);
      const float weight = weights.empty() ? 1 : weights[row];
      const float largest = *std::ranges::max_element(x);
      float sum = 0;
      for (const float logit : x) sum += std::exp(logit - largest);
      *loss_sum += static_cast<double>(weight) * (std::log(sum) - (x[label] - largest));
      if (gradient.empty()) continue;
      float* const out = gradient.data() + row * classes_;
      const float factor = scale * weight;
      for (size_t i = 0; i < classes_; ++i) {
        const float probability = std::exp(x[i] - largest) / sum;
        out[i] = factor * (probability - (i == label ? 1.0f : 0.0f));
      }
    }
  }

 private:
  const size_t classes_;
};

std::unique_ptr<Head> NewRegressionHead(const HeadSpec& spec) {
  switch (spec.loss) {
    case RegressionLoss::kMeanSquared:
      return std::make_unique<MeanHead<SquaredError>>(spec);
    case RegressionLoss::kPoisson:
      return std::make_unique<MeanHead<PoissonLoss>>(spec);
    case RegressionLoss::kLogNormal:
      return std::make_unique<MeanHead<LogNormalLoss>>(spec);
    case RegressionLoss::kLogistic:
      break;
  }
  return std::make_unique<MeanHead<SigmoidCrossEntropy>>(spec);
}

}  // namespace

std::unique_ptr<Head> NewHead(const HeadSpec& spec) {
  switch (spec.kind) {
    case HeadKind::kBinary:
    case HeadKind::kMultiLabel:
      break;
    case HeadKind::kMultiClass:
      return std::make_unique<SoftmaxHead>(spec);
    case HeadKind::kRegression:
      return NewRegressionHead(spec);
  }
  return std::make_unique<MeanHead<SigmoidCrossEntropy>>(spec);
}

std::unique_ptr<Head> NewBinaryHead() { return NewHead({}); }

}  // namespace muster::engine::native
