// HeadSpec: what a model's logits mean and how it learns from labels, as data. The head of a model
// (engine/native/head.h), its predictions (engine/predictions.h), its metrics (metrics/metrics.h)
// and its SavedModel are made of it.
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
  kMultiClass,  // a logit a class; a label is the number of one class
  kMultiLabel,  // a logit a class; a label is 0 or 1 for each class
  kRegression,  // a logit a number; a label is `label_dimension` numbers
};

enum class RegressionLoss { kMeanSquared, kPoisson, kLogNormal, kLogistic };

struct HeadSpec {
  HeadKind kind = HeadKind::kBinary;
  int classes = 2;                                     // kMultiClass: above 2; kMultiLabel: above 1
  RegressionLoss loss = RegressionLoss::kMeanSquared;  // kRegression
  int label_dimension = 1;                             // kRegression

  // Logits and label values a row.
  int logits_dimension() const;
  int labels_dimension() const;
  bool is_regression() const { return kind == HeadKind::kRegression; }
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
