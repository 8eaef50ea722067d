// Code that heads share: labels as the spec defines them, and losses of single logits. Internal to
// this room.
#pragma once

#include <cmath>
#include <memory>
#include <span>
#include <string>

#include "muster/engine/heads/head.h"

namespace muster::engine {

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

struct LossAndSlope {
  float loss, slope;  // slope: dloss/dlogit
};

// sigmoid_cross_entropy_with_logits: max(x, 0) - x z + log(1 + exp(-|x|))
inline LossAndSlope SigmoidCrossEntropy(float x, float label) {
  const float e = std::exp(-std::fabs(x));
  const float positive_part = x < 0 ? 0 : x;  // keeps NaN
  const float sigmoid = (x < 0 ? e : 1.0f) / (1.0f + e);
  return {positive_part - x * label + std::log1p(e), sigmoid - label};
}

// The mean over a row of the loss of each logit with its label.
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

template <LossAndSlope (*kLoss)(float x, float label)>
std::unique_ptr<Head> NewMeanHead(const HeadSpec& spec) {
  return std::make_unique<MeanHead<kLoss>>(spec);
}

}  // namespace muster::engine
