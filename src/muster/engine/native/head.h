// Head: logits and labels to a loss and its gradient; logits to predictions.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"

namespace muster::engine::native {

// Stateless, thread-safe.
class Head {
 public:
  virtual ~Head() = default;
  virtual int logits_dimension() const = 0;
  // INVALID_ARGUMENT "row R: label V ..." for a label that the head cannot learn from.
  virtual absl::Status CheckLabels(std::span<const float> labels) const = 0;
  // Adds to *loss_sum the (weighted) sum over rows; writes gradient[i] = scale * weight *
  // dloss/dlogit. `weights` empty: all 1. `gradient` may be empty: loss only. Both are rows x
  // logits_dimension.
  virtual void Loss(std::span<const float> logits, std::span<const float> labels,
                    std::span<const float> weights, float scale, double* loss_sum,
                    std::span<float> gradient) const = 0;
};

// Sigmoid cross entropy on one logit, labels 0 or 1; the loss is
// max(x, 0) - x * z + log(1 + exp(-|x|)) (tf.nn.sigmoid_cross_entropy_with_logits).
std::unique_ptr<Head> NewBinaryHead();

}  // namespace muster::engine::native
