// ScoredRows: probabilities with labels of 0 or 1, and the metrics of such rows. Internal to this
// layer. Keeps 12 bytes a row, since the exact AUC needs all of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/metrics/means.h"
#include "muster/metrics/state.h"

namespace muster::metrics {

class ScoredRows {
 public:
  static constexpr size_t kSums = 6;  // in a State, besides a list of rows

  // `says_positive`: the head predicts class 1.
  void Add(float probability, bool says_positive, float label, float weight);
  void Merge(const ScoredRows& other);
  void AppendTo(State* state) const;
  void Merge(SumsReader* sums, const std::vector<ScoredRow>& rows);

  double weight() const { return sums_.weight; }
  double label_mean() const { return ComputeMean(sums_.positive, sums_.weight); }
  double prediction_mean() const { return ComputeMean(sums_.probability, sums_.weight); }

  // `exact`: the area under the ROC curve (ties averaged). `interpolated`: TensorFlow's, over 200
  // thresholds (trapezoidal). `precision_recall`: the area under the precision-recall curve (200
  // thresholds, TensorFlow's careful interpolation). NaN with only one class or a NaN prediction.
  struct Areas {
    double exact, interpolated, precision_recall;
  };
  Areas AreasUnderCurves() const;

  // Without rows precision and recall are 0, as in TensorFlow, and the accuracy is NaN.
  struct Decisions {
    double accuracy, precision, recall;
  };
  Decisions Decided() const;
  Decisions DecidedAt(float threshold) const;  // positive: probability > threshold

  // The AUC within each group, exact, ties averaged: `groups` has one number for each row. The mean
  // is weighted by the groups' weights; groups of one class have no AUC and are left out. NaN
  // without a group that has one, or with a NaN prediction.
  struct Grouped {
    double auc, groups, left_out;
  };
  Grouped GroupedAuc(std::span<const uint64_t> groups) const;

  // Weighted sums over the rows with a probability in [i / buckets, (i + 1) / buckets), as in
  // TensorFlow Model Analysis' calibration histogram over [0, 1]; but 1 is in the last bucket.
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
