#include "muster/metrics/scored_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <span>
#include <tuple>

namespace muster::metrics {
namespace {

constexpr int kThresholds = 200;
constexpr size_t kManyRows = 10000;  // from this number on a counting sort pays

double Ratio(double numerator, double denominator) {
  return denominator == 0 ? 0 : numerator / denominator;
}

// Returns a number that compares as std::strong_order(float, float) does.
uint32_t OrderedBits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000;
}

// The weights of positives and negatives predicted above each threshold of tf.keras.metrics.AUC:
// -1e-7, 1/199, ..., 198/199, 1 + 1e-7.
class ThresholdCounts {
 public:
  // As in Keras, a probability belongs to bucket ceil(199 p) - 1, in float arithmetic.
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

  // Sums trapezoids over (false positive rate, recall).
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

// Mann and Whitney's statistic: the share of (positive, negative) pairs in the right order; a tie
// counts as half. `sorted` is sorted by probability. NaN if there is only one class.
double ExactAuc(std::span<const ScoredRow> sorted) {
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

}  // namespace

void ScoredRows::Add(float probability, bool says_positive, float label, float weight) {
  rows_.push_back({probability, label, weight});
  const bool positive = label > 0.5f;
  sums_.weight += weight;
  sums_.positive += positive ? weight : 0;
  sums_.predicted += says_positive ? weight : 0;
  sums_.true_positive += positive && says_positive ? weight : 0;
  sums_.right += positive == says_positive ? weight : 0;
  sums_.probability += static_cast<double>(weight) * probability;
  has_nan_ |= std::isnan(probability);
}

void ScoredRows::Merge(const ScoredRows& other) {
  rows_.insert(rows_.end(), other.rows_.begin(), other.rows_.end());
  sums_.weight += other.sums_.weight;
  sums_.positive += other.sums_.positive;
  sums_.predicted += other.sums_.predicted;
  sums_.true_positive += other.sums_.true_positive;
  sums_.right += other.sums_.right;
  sums_.probability += other.sums_.probability;
  has_nan_ |= other.has_nan_;
}

void ScoredRows::AppendTo(State* state) const {
  state->sums.insert(state->sums.end(), {sums_.weight, sums_.positive, sums_.predicted,
                                         sums_.true_positive, sums_.right, sums_.probability});
  state->scored.push_back(rows_);
}

void ScoredRows::Merge(SumsReader* sums, const std::vector<ScoredRow>& rows) {
  sums->AddTo({&sums_.weight, &sums_.positive, &sums_.predicted, &sums_.true_positive, &sums_.right,
               &sums_.probability});
  rows_.insert(rows_.end(), rows.begin(), rows.end());
  has_nan_ |= std::any_of(rows.begin(), rows.end(),
                          [](const ScoredRow& row) { return std::isnan(row.probability); });
}

// Sorts by probability in IEEE 754's total order, then by label and weight: a total order of all
// three, so that sums do not depend on the order in which rows came or were merged. Many rows are
// sorted by two passes of counting over the probabilities' bits.
std::vector<ScoredRows::Scored> ScoredRows::Sorted() const {
  std::vector<Scored> sorted = rows_;
  const auto is_before = [](const Scored& a, const Scored& b) {
    const uint32_t first = OrderedBits(a.probability), second = OrderedBits(b.probability);
    return std::tie(first, a.label, a.weight) < std::tie(second, b.label, b.weight);
  };
  if (sorted.size() < kManyRows) {
    std::sort(sorted.begin(), sorted.end(), is_before);
    return sorted;
  }
  std::vector<Scored> other(sorted.size());
  for (const int shift : {0, 16}) {
    std::vector<size_t> places(size_t{1} << 16, 0);
    const auto digit = [shift](const Scored& row) {
      return OrderedBits(row.probability) >> shift & 0xffff;
    };
    for (const Scored& row : sorted) ++places[digit(row)];
    std::exclusive_scan(places.begin(), places.end(), places.begin(), size_t{0});
    for (const Scored& row : sorted) other[places[digit(row)]++] = row;
    sorted.swap(other);
  }
  for (auto begin = sorted.begin(), end = begin; begin != sorted.end(); begin = end) {
    const uint32_t bits = OrderedBits(begin->probability);
    end = std::find_if(begin, sorted.end(),
                       [bits](const Scored& row) { return OrderedBits(row.probability) != bits; });
    std::sort(begin, end, is_before);
  }
  return sorted;
}

ScoredRows::Areas ScoredRows::AreasUnderCurves() const {
  if (has_nan_ || sums_.positive <= 0 || sums_.positive >= sums_.weight) return {kNaN, kNaN, kNaN};
  ThresholdCounts counts;
  for (const Scored& row : rows_) counts.Add(row.probability, row.label > 0.5f, row.weight);
  counts.Accumulate();
  return {ExactAuc(Sorted()), counts.AreaUnderRoc(), counts.AreaUnderPrecisionRecall()};
}

ScoredRows::Decisions ScoredRows::Decided() const {
  return {ComputeMean(sums_.right, sums_.weight), Ratio(sums_.true_positive, sums_.predicted),
          Ratio(sums_.true_positive, sums_.positive)};
}

ScoredRows::Decisions ScoredRows::DecidedAt(float threshold) const {
  double predicted = 0, true_positive = 0, right = 0;
  for (const Scored& row : rows_) {
    const bool positive = row.label > 0.5f, says_positive = row.probability > threshold;
    predicted += says_positive ? row.weight : 0;
    true_positive += positive && says_positive ? row.weight : 0;
    right += positive == says_positive ? row.weight : 0;
  }
  return {ComputeMean(right, sums_.weight), Ratio(true_positive, predicted),
          Ratio(true_positive, sums_.positive)};
}

ScoredRows::Grouped ScoredRows::GroupedAuc(std::span<const uint64_t> groups) const {
  if (has_nan_ || groups.size() != rows_.size()) return {kNaN, 0, 0};
  std::vector<size_t> order(rows_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // A total order, so that sums do not depend on the order in which rows came or were merged.
  const auto get_key = [&](size_t i) {
    const Scored& row = rows_[i];
    return std::tuple(groups[i], OrderedBits(row.probability), row.label, row.weight);
  };
  std::ranges::sort(order, {}, get_key);
  Grouped found = {kNaN, 0, 0};
  double sum = 0, weights = 0;
  std::vector<Scored> group;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    group.clear();
    double weight = 0, positive = 0;
    for (; end < order.size() && groups[order[end]] == groups[order[begin]]; ++end) {
      const Scored& row = group.emplace_back(rows_[order[end]]);
      weight += row.weight;
      positive += row.label > 0.5f ? row.weight : 0;
    }
    if (!(positive > 0 && positive < weight)) {
      ++found.left_out;
      continue;
    }
    ++found.groups;
    sum += weight * ExactAuc(group);
    weights += weight;
  }
  found.auc = ComputeMean(sum, weights);
  return found;
}

std::vector<ScoredRows::Bucket> ScoredRows::Calibration(int buckets) const {
  std::vector<Bucket> out(static_cast<size_t>(buckets));
  for (const Scored& row : rows_) {
    if (std::isnan(row.probability)) continue;
    const auto place = static_cast<int>(row.probability * static_cast<float>(buckets));
    Bucket& bucket = out[static_cast<size_t>(std::clamp(place, 0, buckets - 1))];
    bucket.weight += row.weight;
    bucket.label_sum += static_cast<double>(row.weight) * row.label;
    bucket.prediction_sum += static_cast<double>(row.weight) * row.probability;
  }
  return out;
}

}  // namespace muster::metrics
