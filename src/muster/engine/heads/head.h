// Head: computes the loss of a batch and its gradient from logits and labels.
//
// The loss of a batch is the sum of weight * loss over its rows, divided by the number of rows, not
// by the sum of weights (SUM_OVER_BATCH_SIZE of tf.estimator's V2 heads), or that sum itself
// (HeadSpec::sums). The loss of a row is what tf.estimator's head of the same kind defines; the
// file of each kind has the formula.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/heads/head_spec.h"

namespace muster::engine {

// Stateless, thread-safe.
class Head {
 public:
  virtual ~Head() = default;
  virtual int logits_dimension() const = 0;
  virtual int labels_dimension() const { return 1; }
  // As HeadSpec::LossScale.
  virtual double LossScale(double rows) const { return 1 / rows; }
  // INVALID_ARGUMENT "row R: label V ..." for a label that the head cannot learn from. `labels` is
  // rows x labels_dimension.
  virtual absl::Status CheckLabels(std::span<const float> labels) const = 0;
  // True if a row's loss depends on the other rows: Loss must then be called for a whole batch, or
  // for a replica's whole share of it. False: it may be called for any run of rows.
  virtual bool couples_rows() const { return false; }
  // Adds the (weighted) sum over rows to *loss_sum and writes gradient[i] = scale * weight *
  // dloss/dlogit. If `weights` is empty, all are 1. `gradient` has the shape of the logits, rows x
  // logits_dimension; if it is empty, only the loss is computed.
  virtual void Loss(std::span<const float> logits, std::span<const float> labels,
                    std::span<const float> weights, float scale, double* loss_sum,
                    std::span<float> gradient) const = 0;
};

// `spec` is valid.
std::unique_ptr<Head> NewHead(const HeadSpec& spec);
std::unique_ptr<Head> NewBinaryHead();

}  // namespace muster::engine
