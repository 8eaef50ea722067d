// HeadSpec: what a model's logits mean and how it learns from labels, as data. A model's head
// (engine/native/head.h), predictions (engine/predictions.h), metrics (metrics/metrics.h) and
// SavedModel are built from it.
//
// As tf.estimator's heads of the same names; losses are in engine/native/head.h.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "muster/base/status.h"

namespace muster::engine {

enum class HeadKind {
  kBinary,      // one logit; a label is 0 or 1
  kMultiClass,  // one logit per class; a label is the number of one class
  kMultiLabel,  // one logit per class; a label is 0 or 1 for each class
  kRegression,  // one logit per number; a label is `label_dimension` numbers
};

enum class RegressionLoss { kMeanSquared, kPoisson, kLogNormal, kLogistic };

struct HeadSpec {
  HeadKind kind = HeadKind::kBinary;
  int classes = 2;                                     // kMultiClass: above 2; kMultiLabel: above 1
  RegressionLoss loss = RegressionLoss::kMeanSquared;  // kRegression
  int label_dimension = 1;                             // kRegression
  bool sums = false;  // a batch's loss is the sum over its rows, not their mean (LossScale)

  // Logits and label values per row.
  int logits_dimension() const;
  int labels_dimension() const;
  bool is_regression() const { return kind == HeadKind::kRegression; }
  // The factor by which the sum of the (weighted) losses of `rows` rows is multiplied to give the
  // batch's loss: 1 / rows, tf.estimator's SUM_OVER_BATCH_SIZE. With `sums`, its SUM: 1, or for a
  // regression label_dimension, as its row then has the sum over label dimensions and not their
  // mean.
  double LossScale(double rows) const;
  friend bool operator==(const HeadSpec&, const HeadSpec&) = default;
};

// "binary", "multi_class", "multi_label", "regression"; "mean_squared", "poisson", "log_normal",
// "logistic".
std::string_view HeadName(HeadKind kind);
std::string_view LossName(RegressionLoss loss);

// INVALID_ARGUMENT for numbers of classes or dimensions that the head cannot have.
absl::Status Validate(const HeadSpec& spec);

// The row of the first label that the head cannot learn from (*why: "2 is not 0 or 1, ..."), or -1.
// `labels` is rows x spec.labels_dimension().
int FindBadLabel(const HeadSpec& spec, std::span<const float> labels, std::string* why);

}  // namespace muster::engine
