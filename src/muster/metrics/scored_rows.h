// ScoredRows: probabilities with labels of 0 or 1, and the metrics of such rows. Keeps 12 bytes per
// row, since the exact AUC needs all rows. Internal to this layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/metrics/means.h"
#include "muster/metrics/state.h"

namespace muster::metrics {

class ScoredRows {
 public:
  // the number of sums in a State, which also has a list of rows
  static constexpr size_t kSums = 6;

  // `says_positive`: the head predicts class 1.
  void Add(float probability, bool says_positive, float label, float weight);
  void Merge(const ScoredRows& other);
  void AppendTo(State* state) const;
  void Merge(SumsReader* sums, const std::vector<ScoredRow>& rows);

  double weight() const { return sums_.weight; }
  double label_mean() const { return ComputeMean(sums_.positive, sums_.weight); }
  double prediction_mean() const { return ComputeMean(sums_.probability, sums_.weight); }

  // `exact` is the area under the ROC curve (ties averaged), `interpolated` TensorFlow's value over
  // 200 thresholds (trapezoidal), `precision_recall` the area under the precision-recall curve (200
  // thresholds, TensorFlow's careful interpolation). NaN if there is only one class or a NaN
  // prediction.
  struct Areas {
    double exact, interpolated, precision_recall;
  };
  Areas AreasUnderCurves() const;

  // Without rows precision and recall are 0, as in TensorFlow, and the accuracy is NaN.
  struct Decisions {
    double accuracy, precision, recall;
  };
  Decisions Decided() const;
  Decisions DecidedAt(float threshold) const;  // positive means probability > threshold

  // The exact AUC within each group, ties averaged: `groups` has one number for each row. The mean
  // is weighted by the groups' weights. Groups with a single class have no AUC and are left out.
  // NaN if no group has an AUC, or with a NaN prediction.
  struct Grouped {
    double auc, groups, left_out;
  };
  Grouped GroupedAuc(std::span<const uint64_t> groups) const;

  // Weighted sums over the rows with a probability in [i / buckets, (i + 1) / buckets), as in the
  // calibration histogram of TensorFlow Model Analysis over [0, 1], except that 1 belongs to the
  // last bucket.
  struct Bucket {
    double weight = 0, label_sum = 0, prediction_sum = 0;
  };
  std::vector<Bucket> Calibration(int buckets) const;

 private:
  using Scored = ScoredRow;
  struct Sums {
    double weight = 0, positive = 0, predicted = 0, true_positive = 0, right = 0, probability = 0;
  };
  std::vector<Scored> Sorted() const;

  std::vector<Scored> rows_;
  Sums sums_;
  bool has_nan_ = false;
};

}  // namespace muster::metrics
