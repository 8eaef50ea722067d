// Head: computes the loss and its gradient from logits and labels. Predictions are in
// engine/predictions.h.
//
// The loss of a row, with logits x and labels z, as tf.estimator's heads define it:
//   binary       max(x, 0) - x z + log(1 + exp(-|x|))   (sigmoid_cross_entropy_with_logits)
//   multi-class  log(sum over j of exp(x_j)) - x_z      (sparse_softmax_cross_entropy)
//   multi-label  the mean over classes of the binary loss
//   regression   the mean over label dimensions of
//     mean_squared  (x - z)^2
//     poisson       exp(x) - x z, and for z > 1 Stirling's z log z - z + log(2 pi z) / 2
//                   (tf.nn.log_poisson_loss with compute_full_loss, PoissonRegressionHead); the
//                   prediction is exp(x)
//     log_normal    log z + log(2 pi s) / 2 + (log z - x + s / 2)^2 / (2 s), s = log 2: minus the
//                   log likelihood of LogNormal(x - s / 2, sqrt(s)), whose mean is the prediction
//                   exp(x) (tfp.glm.LogNormal; tf.estimator has no such head)
//     logistic      the binary loss, for labels between 0 and 1 (LogisticRegressionHead); the
//                   prediction is the sigmoid of x
// The loss of a batch is the sum of weight * loss over its rows, divided by their number, not by
// the sum of weights: SUM_OVER_BATCH_SIZE of tf.estimator's V2 heads; or that sum (HeadSpec::sums).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/head_spec.h"

namespace muster::engine::native {

// Stateless, thread-safe.
class Head {
 public:
  virtual ~Head() = default;
  virtual int logits_dimension() const = 0;
  virtual int labels_dimension() const { return 1; }
  // HeadSpec::LossScale.
  virtual double LossScale(double rows) const { return 1 / rows; }
  // INVALID_ARGUMENT "row R: label V ..." for a label that the head cannot learn from. `labels` is
  // rows x labels_dimension.
  virtual absl::Status CheckLabels(std::span<const float> labels) const = 0;
  // Adds to *loss_sum the (weighted) sum over rows; writes gradient[i] = scale * weight *
  // dloss/dlogit. `weights` empty: all 1. `gradient` has the shape of the logits, rows x
  // logits_dimension, or is empty: loss only.
  virtual void Loss(std::span<const float> logits, std::span<const float> labels,
                    std::span<const float> weights, float scale, double* loss_sum,
                    std::span<float> gradient) const = 0;
};

// `spec` is valid.
std::unique_ptr<Head> NewHead(const HeadSpec& spec);
std::unique_ptr<Head> NewBinaryHead();

}  // namespace muster::engine::native
