#include "muster/data/clicks_sample.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "muster/base/random.h"
#include "muster/base/strings.h"

namespace muster::data {
namespace {

constexpr uint64_t kModelSeed = 1;
constexpr uint32_t kModelStream = 0;
constexpr uint32_t kRowStream = 1;
constexpr double kZipfExponent = 1.1;

// These are chosen so that a row is positive with probability 0.25 and the true model's AUC is
// 0.80.
constexpr double kIntercept = -1.66;
constexpr double kScale = 0.87;

// log(x) is normal(mean, deviation); several columns have a part of it in common.
struct NumberColumn {
  double mean, deviation, shared;
  double missing;         // the share of rows without a value
  double missing_weight;  // its share of the logit; 0: that the value is missing says nothing
  double slope;           // of the logit over the standardised logarithm
  bool hundredths;        // hundredths; else whole numbers
};

constexpr std::array<NumberColumn, kClickNumbers> kNumbers = {{
    {3.0, 1.0, 0.5, 0.02, 0.00, 0.70, false},
    {4.0, 1.2, 0.0, 0.05, 0.40, -0.56, false},
    {3.5, 0.8, 0.3, 0.03, 0.00, 0.28, false},
    {5.0, 1.5, 0.0, 0.10, 0.00, 0.00, false},
    {6.0, 1.3, 0.4, 0.20, -0.40, -0.42, false},
    {2.5, 0.7, 0.0, 0.08, 0.00, 0.35, false},
    {4.5, 1.0, 0.0, 0.03, 0.00, 0.00, false},
    {3.0, 0.9, 0.2, 0.05, 0.00, 0.14, false},
    {5.5, 1.4, 0.5, 0.15, 0.00, 0.21, false},
    {2.0, 0.6, 0.0, 0.40, 0.30, 0.21, false},
    {1.0, 1.0, 0.0, 0.04, 0.00, -0.21, true},
    {2.0, 1.2, 0.3, 0.30, 0.00, 0.00, true},
    {0.5, 0.8, 0.0, 0.02, 0.00, 0.00, true},
}};

constexpr int kStepNumber = 3;    // I4: the logit has a step
constexpr int kCurvedNumber = 6;  // I7: the logit is a parabola
// The slope of some numbers depends on a category: that of I3 on C2, that of I8 on C3.
struct Tilt {
  int number, category;
  std::array<double, 5> slopes;  // by rank
};
constexpr std::array<Tilt, 2> kTilts = {
    {{2, 1, {0.25, -0.25, 0.05, 0, 0}}, {7, 2, {-0.20, 0.25, 0.00, 0.30, -0.30}}}};

struct CrossColumns {
  int first, second;
  double deviation;
};
constexpr std::array<CrossColumns, 3> kCrosses = {{{1, 3, 0.30}, {2, 4, 0.25}, {0, 5, 0.20}}};

constexpr std::array<double, kClickCategories> kCategoryMissing = {
    0.00, 0.03, 0.00, 0.05, 0.02, 0.00, 0.10, 0.03, 0.00, 0.20, 0.04, 0.00, 0.08,
    0.40, 0.02, 0.00, 0.05, 0.30, 0.00, 0.03, 0.12, 0.00, 0.25, 0.04, 0.35, 0.05};
constexpr std::array<double, kClickCategories> kCategoryMissingWeight = {
    0, 0.2, 0, 0, 0, 0, 0.3, 0, 0, -0.3, 0, 0, 0, 0.3, 0, 0, 0, -0.2, 0, 0, 0, 0, 0.2, 0, 0, 0};

// Rare values have small weights, so that 200,000 rows are enough to learn nearly everything.
constexpr double kTypicalRows = 200'000;
constexpr double kShrinkRows = 5000;
constexpr int kWeightedRanks = 4096;

double CategoryDeviation(int column) {
  if (column < 6) return 0.40;
  if (column < 10) return 0.15;
  if (column < 14) return 0.05;
  return column < 20 ? 0.03 : 0.015;
}

// Maps 32 bits one-to-one, so that distinct values of a column have distinct names.
uint32_t CategoryName(int column, int32_t rank) {
  uint32_t x =
      static_cast<uint32_t>(rank + 1) * 0x9e3779b1u + static_cast<uint32_t>(column) * 0x61c88647u;
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

void AppendHex(uint32_t value, std::string* text) {
  for (int shift = 28; shift >= 0; shift -= 4) {
    text->push_back("0123456789abcdef"[(value >> shift) & 15]);
  }
}

void AppendNumber(double value, std::string* text) {
  char buffer[32];
  const auto result =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  text->append(buffer, result.ptr);
}

double DrawNumber(const NumberColumn& column, double shared, RandomStream* random) {
  const double own = random->Normal();
  const double z = column.shared * shared + std::sqrt(1 - column.shared * column.shared) * own;
  const double x = std::exp(column.mean + column.deviation * z);
  return column.hundredths ? std::max(1.0, std::round(x * 100)) / 100
                           : std::max(1.0, std::round(x));
}

double Standardised(const NumberColumn& column, double x) {
  return std::clamp((std::log(x) - column.mean) / column.deviation, -3.0, 3.0);
}

double NumberLogit(int i, double z) {
  const double linear = kNumbers[i].slope * z;
  if (i == kStepNumber) return linear + (z > 0.5 ? 0.4 : 0.0);
  if (i == kCurvedNumber) return linear + 0.20 * (z * z - 1);
  return linear;
}

bool IsMissing(double share, RandomStream* random) {
  return random->Next32() < static_cast<uint64_t>(share * 0x1p32);
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

int ClickSampler::Cardinality(int column) {
  return static_cast<int>(std::lround(2 * std::pow(50'000, column / 25.0)));
}

ClickSampler::Zipf::Zipf(int cardinality) : keep(cardinality, ~0u), other(cardinality) {
  std::vector<double> share(cardinality);
  for (int k = 0; k < cardinality; ++k) share[k] = std::pow(k + 1, -kZipfExponent);
  const double sum = std::accumulate(share.rbegin(), share.rend(), 0.0);
  frequency_of_first = 1 / sum;
  std::vector<int32_t> small, large;
  for (int k = cardinality - 1; k >= 0; --k) {
    share[k] *= cardinality / sum;
    other[k] = k;
    (share[k] < 1 ? small : large).push_back(k);
  }
  while (!small.empty() && !large.empty()) {
    const int32_t slot = small.back(), giver = large.back();
    small.pop_back();
    keep[slot] = static_cast<uint32_t>(share[slot] * 0x1p32);
    other[slot] = giver;
    share[giver] -= 1 - share[slot];
    if (share[giver] < 1) {
      large.pop_back();
      small.push_back(giver);
    }
  }
}

int32_t ClickSampler::Zipf::Draw(uint64_t random) const {
  const auto slot = static_cast<size_t>((random >> 32) * keep.size() >> 32);
  return static_cast<uint32_t>(random) < keep[slot] ? static_cast<int32_t>(slot) : other[slot];
}

ClickSampler::ClickSampler(uint64_t seed) : seed_(seed) {
  for (int c = 0; c < kClickCategories; ++c) {
    const int cardinality = Cardinality(c);
    ranks_.emplace_back(cardinality);
    RandomStream random(kModelSeed, RandomPurpose::kSampleData, c, kModelStream);
    std::vector<float>& weights = weights_.emplace_back(std::min(cardinality, kWeightedRanks));
    for (size_t k = 0; k < weights.size(); ++k) {
      const double rows =
          kTypicalRows * ranks_[c].frequency_of_first * std::pow(k + 1, -kZipfExponent);
      weights[k] = static_cast<float>(CategoryDeviation(c) * rows / (rows + kShrinkRows) *
                                      random.TruncatedNormal());
    }
  }
  for (const CrossColumns& columns : kCrosses) {
    RandomStream random(kModelSeed, RandomPurpose::kSampleData, kClickCategories + crosses_.size(),
                        kModelStream);
    Cross& cross = crosses_.emplace_back(
        Cross{columns.first, columns.second, Cardinality(columns.second), {}});
    const int cells = Cardinality(columns.first) * cross.second_values;
    for (int k = 0; k < cells; ++k) {
      cross.weights.push_back(static_cast<float>(columns.deviation * random.TruncatedNormal()));
    }
  }
}

double ClickSampler::Logit(const ClickRow& row) const {
  double sum = 0;
  std::array<double, kClickNumbers> z{};
  for (int i = 0; i < kClickNumbers; ++i) {
    if (std::isnan(row.numbers[i])) {
      sum += kNumbers[i].missing_weight;
    } else {
      z[i] = Standardised(kNumbers[i], row.numbers[i]);
      sum += NumberLogit(i, z[i]);
    }
  }
  for (int c = 0; c < kClickCategories; ++c) {
    const int32_t rank = row.categories[c];
    if (rank < 0) {
      sum += kCategoryMissingWeight[c];
    } else if (static_cast<size_t>(rank) < weights_[c].size()) {
      sum += weights_[c][rank];
    }
  }
  for (const Tilt& tilt : kTilts) {
    const int32_t rank = row.categories[tilt.category];
    if (rank >= 0) sum += tilt.slopes[rank] * z[tilt.number];
  }
  for (const Cross& cross : crosses_) {
    const int32_t first = row.categories[cross.first], second = row.categories[cross.second];
    if (first >= 0 && second >= 0) {
      sum += cross.weights[first * cross.second_values + second];
    }
  }
  return kIntercept + kScale * sum;
}

ClickRow ClickSampler::Row(uint64_t n) const {
  RandomStream random(seed_, RandomPurpose::kSampleData, n, kRowStream);
  ClickRow row;
  const double shared = random.Normal();
  for (int i = 0; i < kClickNumbers; ++i) {
    row.numbers[i] = DrawNumber(kNumbers[i], shared, &random);
    if (IsMissing(kNumbers[i].missing, &random)) {
      row.numbers[i] = std::numeric_limits<double>::quiet_NaN();
    }
  }
  for (int c = 0; c < kClickCategories; ++c) {
    row.categories[c] = ranks_[c].Draw(random.Next64());
    if (IsMissing(kCategoryMissing[c], &random)) row.categories[c] = -1;
  }
  row.probability = Sigmoid(Logit(row));
  row.label = random.UniformDouble() < row.probability;
  return row;
}

std::string ClickSampler::Header() {
  std::string header = "label";
  for (int i = 1; i <= kClickNumbers; ++i) header += StrCat(",I", i);
  for (int c = 1; c <= kClickCategories; ++c) header += StrCat(",C", c);
  return header + "\n";
}

void ClickSampler::AppendCsv(const ClickRow& row, std::string* text) {
  text->push_back(row.label ? '1' : '0');
  for (const double x : row.numbers) {
    text->push_back(',');
    if (!std::isnan(x)) AppendNumber(x, text);
  }
  for (int c = 0; c < kClickCategories; ++c) {
    text->push_back(',');
    if (row.categories[c] >= 0) AppendHex(CategoryName(c, row.categories[c]), text);
  }
  text->push_back('\n');
}

namespace {

// Returns ranks from 1 within `order`, which sorts `values`; tied values get their average rank.
std::vector<double> MidRanks(std::span<const double> values, std::span<const uint32_t> order) {
  std::vector<double> ranks(order.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) ranks[i] = 0.5 * static_cast<double>(begin + end + 1);
    begin = end;
  }
  return ranks;
}

struct Moments {
  double count = 0, mean = 0, squares = 0;
  void Add(double x) {  // Welford's method
    const double delta = x - mean;
    mean += delta / ++count;
    squares += delta * (x - mean);
  }
  double VarianceOfMean() const { return squares / (count - 1) / count; }
};

}  // namespace

// The AUC is the mean over positives of the share of negatives below them (and vice versa). Such a
// share is a placement, and the variance of the AUC is the sum of both means' variances. With
// mid-ranks: X. Sun, W. Xu, "Fast Implementation of DeLong's Algorithm", 2014.
BestScore ScoreTruth(std::span<const double> probabilities, std::span<const uint8_t> labels) {
  Moments loss;
  for (size_t i = 0; i < labels.size(); ++i) {
    loss.Add(-std::log(labels[i] ? probabilities[i] : 1 - probabilities[i]));
  }
  std::vector<uint32_t> all(labels.size());
  std::iota(all.begin(), all.end(), 0);
  std::sort(all.begin(), all.end(),
            [&](uint32_t a, uint32_t b) { return probabilities[a] < probabilities[b]; });
  std::array<std::vector<uint32_t>, 2> of_label;
  for (const uint32_t i : all) of_label[labels[i] != 0].push_back(i);
  const std::vector<double> rank = MidRanks(probabilities, all);
  const std::array<std::vector<double>, 2> rank_within = {MidRanks(probabilities, of_label[0]),
                                                          MidRanks(probabilities, of_label[1])};
  std::array<Moments, 2> placements;
  std::array<size_t, 2> next{};
  for (size_t i = 0; i < all.size(); ++i) {
    const bool label = labels[all[i]] != 0;
    const double others = static_cast<double>(of_label[!label].size());
    const double below = rank[i] - rank_within[label][next[label]++];
    placements[label].Add(label ? below / others : 1 - below / others);
  }
  BestScore score;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const bool both = !of_label[0].empty() && !of_label[1].empty();
  score.positives = static_cast<double>(of_label[1].size()) / static_cast<double>(labels.size());
  score.auc = both ? placements[1].mean : nan;
  score.auc_error =
      both ? std::sqrt(placements[0].VarianceOfMean() + placements[1].VarianceOfMean()) : nan;
  score.log_loss = loss.count > 0 ? loss.mean : nan;
  score.log_loss_error = std::sqrt(loss.VarianceOfMean());
  return score;
}

}  // namespace muster::data
