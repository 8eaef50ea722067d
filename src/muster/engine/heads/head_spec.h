// HeadSpec: what a model's logits mean and how it learns from labels, as data. A model's head
// (head.h), predictions (engine/predictions.h), metrics (metrics/metrics.h) and SavedModel are
// built from it.
//
// The kinds are those of tf.estimator, under the same names; each is in the file of its name, and
// in the table of head_kinds.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "muster/base/status.h"

namespace muster::engine {

struct HeadSpec {
  std::string kind = "binary";        // HeadKind::name
  int classes = 2;                    // multi_class: above 2; multi_label: above 1
  std::string loss = "mean_squared";  // regression; others: poisson, log_normal, logistic
  int label_dimension = 1;            // regression
  // in_batch_softmax: the length of a query's or item's vector, the temperature that their products
  // are divided by, and the column of the items' probabilities ("": the loss is not corrected by
  // them).
  int vector_size = 0;
  double temperature = 1;
  std::string sampling_probability = {};
  bool sums = false;  // a batch's loss is the sum over its rows, not their mean (LossScale)

  // The numbers of logits and label values per row.
  int logits_dimension() const;
  int labels_dimension() const;
  // The number of classes that the words of a label name; 0: labels are numbers.
  int class_count() const;
  // The factor that turns the sum of the (weighted) losses of `rows` rows into the batch's loss: 1
  // / rows, tf.estimator's SUM_OVER_BATCH_SIZE; with `sums`, the kind's GetSumScale.
  double LossScale(double rows) const;
  friend bool operator==(const HeadSpec&, const HeadSpec&) = default;
};

// INVALID_ARGUMENT for an unknown kind, and for numbers of classes, dimensions or losses that the
// head does not allow. All other functions of heads take valid specs.
absl::Status Validate(const HeadSpec& spec);

// Returns the row of the first label that the head cannot learn from (*why: "2 is not 0 or 1,
// ..."), or -1. `labels` is rows x spec.labels_dimension().
int FindBadLabel(const HeadSpec& spec, std::span<const float> labels, std::string* why);

}  // namespace muster::engine
