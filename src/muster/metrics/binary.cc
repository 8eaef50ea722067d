#include "muster/metrics/binary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <limits>

namespace muster::metrics {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kThresholds = 200;

double Ratio(double numerator, double denominator) {
  return denominator == 0 ? 0 : numerator / denominator;
}

// The weight of positives and negatives predicted over each of tf.keras.metrics.AUC's thresholds:
// -1e-7, 1/199, ..., 198/199, 1 + 1e-7.
class ThresholdCounts {
 public:
  // Keras: a probability belongs to bucket ceil(199 p) - 1, in float arithmetic.
  void Add(float probability, bool positive, double weight) {
    const float scaled = std::clamp(probability, 0.0f, 1.0f) * (kThresholds - 1);
    const int bucket = std::max(0, static_cast<int>(std::ceil(scaled)) - 1);
    (positive ? positives_ : negatives_)[bucket] += weight;
  }

  void Accumulate() {
    for (int i = kThresholds - 2; i >= 0; --i) {
      positives_[i] += positives_[i + 1];
      negatives_[i] += negatives_[i + 1];
    }
  }

  // Trapezoids under (false positive rate, recall).
  double AreaUnderRoc() const {
    double area = 0;
    for (int i = 0; i + 1 < kThresholds; ++i) {
      area += (negatives_[i] - negatives_[i + 1]) * (positives_[i] + positives_[i + 1]) / 2;
    }
    return area / (positives_[0] * negatives_[0]);
  }

  // Davis, Goadrich, "The Relationship Between Precision-Recall and ROC Curves" (ICML 2006):
  // between two thresholds precision follows the true positives' slope, not a straight line.
  double AreaUnderPrecisionRecall() const {
    double area = 0;
    for (int i = 0; i + 1 < kThresholds; ++i) {
      const double above = positives_[i] + negatives_[i];
      const double below = positives_[i + 1] + negatives_[i + 1];
      const double slope = Ratio(positives_[i] - positives_[i + 1], above - below);
      const double intercept = positives_[i + 1] - slope * below;
      const double ratio = above > 0 && below > 0 ? above / below : 1;
      area += slope * (positives_[i] - positives_[i + 1] + intercept * std::log(ratio));
    }
    return area / positives_[0];
  }

 private:
  std::array<double, kThresholds> positives_{};
  std::array<double, kThresholds> negatives_{};
};

}  // namespace

void BinaryMetrics::Add(std::span<const float> probabilities, std::span<const float> labels,
                        std::span<const float> weights) {
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const float weight = weights.empty() ? 1.0f : weights[i];
    scored_.push_back({probabilities[i], labels[i], weight});
    weight_sum_ += weight;
  }
}

void BinaryMetrics::Merge(const BinaryMetrics& other) {
  scored_.insert(scored_.end(), other.scored_.begin(), other.scored_.end());
  loss_sum_ += other.loss_sum_;
  weight_sum_ += other.weight_sum_;
}

// Mann and Whitney's statistic: the share of (positive, negative) pairs in the right order, a tie
// counting half.
double BinaryMetrics::ExactAuc() const {
  std::vector<Scored> sorted = scored_;
  // A total order of all three, so that sums do not depend on how rows came or were merged.
  std::sort(sorted.begin(), sorted.end(), [](const Scored& a, const Scored& b) {
    const auto order = std::strong_order(a.probability, b.probability);
    if (std::is_neq(order)) return std::is_lt(order);
    if (a.label != b.label) return a.label < b.label;
    return a.weight < b.weight;
  });
  double positives = 0, negatives = 0, pairs = 0;
  for (size_t begin = 0, end; begin < sorted.size(); begin = end) {
    double tied_positives = 0, tied_negatives = 0;
    for (end = begin; end < sorted.size() && sorted[end].probability == sorted[begin].probability;
         ++end) {
      (sorted[end].label > 0.5f ? tied_positives : tied_negatives) += sorted[end].weight;
    }
    pairs += tied_positives * (negatives + tied_negatives / 2);
    positives += tied_positives;
    negatives += tied_negatives;
  }
  return pairs / (positives * negatives);
}

std::vector<NamedValue> BinaryMetrics::Values() const {
  double positives = 0, predicted = 0, true_positives = 0, right = 0, probability_sum = 0;
  bool has_nan = false;
  ThresholdCounts counts;
  for (const Scored& row : scored_) {
    const double weight = row.weight;
    const bool positive = row.label > 0.5f, says_positive = row.probability > 0.5f;
    positives += positive ? weight : 0;
    predicted += says_positive ? weight : 0;
    true_positives += positive && says_positive ? weight : 0;
    right += positive == says_positive ? weight : 0;
    probability_sum += weight * row.probability;
    has_nan |= std::isnan(row.probability);
    if (!has_nan) counts.Add(row.probability, positive, weight);
  }
  counts.Accumulate();
  const double rows = weight_sum_ > 0 ? weight_sum_ : kNaN;
  const double label_mean = positives / rows;
  const bool has_auc = !has_nan && positives > 0 && positives < weight_sum_;
  return {
      {"accuracy", right / rows},
      {"accuracy_baseline", std::max(label_mean, 1 - label_mean)},
      {"auc", has_auc ? ExactAuc() : kNaN},
      {"auc_interpolated", has_auc ? counts.AreaUnderRoc() : kNaN},
      {"auc_precision_recall", has_auc ? counts.AreaUnderPrecisionRecall() : kNaN},
      {"average_loss", loss_sum_ / rows},
      {"label/mean", label_mean},
      {"precision", Ratio(true_positives, predicted)},
      {"prediction/mean", probability_sum / rows},
      {"recall", Ratio(true_positives, positives)},
  };
}

}  // namespace muster::metrics
