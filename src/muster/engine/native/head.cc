#include "muster/engine/native/head.h"

#include <cmath>

namespace muster::engine::native {
namespace {

class BinaryHead final : public Head {
 public:
  int logits_dimension() const override { return 1; }

  absl::Status CheckLabels(std::span<const float> labels) const override {
    for (size_t row = 0; row < labels.size(); ++row) {
      if (labels[row] != 0 && labels[row] != 1) {
        return absl::InvalidArgumentError(StrCat("row ", row, ": label ", labels[row],
                                                 " is not 0 or 1, which a binary head needs"));
      }
    }
    return absl::OkStatus();
  }

  void Loss(std::span<const float> logits, std::span<const float> labels,
            std::span<const float> weights, float scale, double* loss_sum,
            std::span<float> gradient) const override {
    for (size_t i = 0; i < logits.size(); ++i) {
      const float x = logits[i];
      const float weight = weights.empty() ? 1 : weights[i];
      const float e = std::exp(-std::fabs(x));
      const float positive_part = x < 0 ? 0 : x;  // keeps NaN
      const float loss = positive_part - x * labels[i] + std::log1p(e);
      *loss_sum += static_cast<double>(weight) * loss;
      if (gradient.empty()) continue;
      const float sigmoid = (x < 0 ? e : 1.0f) / (1.0f + e);
      gradient[i] = scale * weight * (sigmoid - labels[i]);
    }
  }
};

}  // namespace

std::unique_ptr<Head> NewBinaryHead() { return std::make_unique<BinaryHead>(); }

}  // namespace muster::engine::native
