#include "muster/metrics/binary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>

#include "muster/base/random.h"

namespace muster::metrics {
namespace {

struct Case {
  std::string name;
  std::vector<float> probabilities, labels, weights;
  std::map<std::string, double> values;
};

// Reads testdata/binary.txt, which make_test_values.py wrote.
std::vector<Case> CommittedCases() {
  std::ifstream file(MUSTER_TESTDATA "/binary.txt");
  std::vector<Case> cases;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind;
    if (kind == "case") {
      words >> cases.emplace_back().name;
    } else if (kind == "row") {
      float probability, label, weight;
      words >> probability >> label >> weight;
      cases.back().probabilities.push_back(probability);
      cases.back().labels.push_back(label);
      cases.back().weights.push_back(weight);
    } else {
      words >> name >> cases.back().values[name];
    }
    EXPECT_TRUE(words) << line;
  }
  return cases;
}

std::map<std::string, double> GetValues(const BinaryMetrics& metrics) {
  const auto values = metrics.Values();
  return {values.begin(), values.end()};
}

TEST(BinaryMetricsTest, AgreesWithTensorFlow) {
  const std::vector<Case> cases = CommittedCases();
  ASSERT_EQ(cases.size(), 6u);
  for (const Case& one : cases) {
    BinaryMetrics metrics;
    metrics.AddProbabilities(one.probabilities, one.labels, one.weights);
    const auto values = GetValues(metrics);
    EXPECT_EQ(one.values.size(), 9u);
    for (const auto& [name, expected] : one.values) {
      ASSERT_TRUE(values.contains(name)) << name;
      EXPECT_NEAR(values.at(name), expected, 1e-6) << one.name << " " << name;
    }
  }
}

TEST(BinaryMetricsTest, NamesInOrder) {
  std::vector<std::string> names;
  for (const auto& [name, value] : BinaryMetrics().Values()) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"accuracy", "accuracy_baseline", "auc", "auc_interpolated",
                                      "auc_precision_recall", "average_loss", "label/mean",
                                      "precision", "prediction/mean", "recall", "loss"}));
}

TEST(BinaryMetricsTest, WithoutWeightsEveryRowCountsAsOne) {
  const Case plain = CommittedCases().front();
  BinaryMetrics weighted, unweighted;
  weighted.AddProbabilities(plain.probabilities, plain.labels, plain.weights);
  unweighted.AddProbabilities(plain.probabilities, plain.labels, {});
  weighted.AddLoss(3, 150);
  unweighted.AddLoss(3, 150);
  EXPECT_EQ(weighted.Values(), unweighted.Values());
  EXPECT_EQ(weighted.rows(), 150);
  EXPECT_EQ(GetValues(weighted).at("average_loss"), 0.02);
}

// Enough rows for a counting sort.
TEST(BinaryMetricsTest, TheExactAucOfManyRowsCountsPairs) {
  RandomStream random(5, RandomPurpose::kSampleData, 0);
  std::vector<float> probabilities, labels, weights;
  constexpr size_t kRows = 12'000, kSteps = 500;
  std::vector<double> positives(kSteps + 1), negatives(kSteps + 1);
  for (size_t i = 0; i < kRows; ++i) {
    const auto step = static_cast<size_t>(random.Below(kSteps + 1));
    // The last value is negative, so below all others.
    probabilities.push_back(step == kSteps ? -1.0f : static_cast<float>(step) / kSteps);
    labels.push_back(static_cast<float>(random.Below(2)));
    weights.push_back(static_cast<float>(random.Below(4)));
    const size_t place = step == kSteps ? 0 : step + 1;
    (labels.back() > 0 ? positives : negatives)[place] += weights.back();
  }
  double pairs = 0, below = 0, all = 0;
  for (size_t i = 0; i <= kSteps; ++i) {
    pairs += positives[i] * (below + negatives[i] / 2);
    below += negatives[i];
    all += positives[i];
  }
  BinaryMetrics forwards, backwards;
  forwards.AddProbabilities(probabilities, labels, weights);
  for (auto* values : {&probabilities, &labels, &weights}) std::ranges::reverse(*values);
  backwards.AddProbabilities(probabilities, labels, weights);
  EXPECT_DOUBLE_EQ(GetValues(forwards).at("auc"), pairs / (all * below));
  EXPECT_EQ(GetValues(forwards).at("auc"), GetValues(backwards).at("auc"));
}

TEST(BinaryMetricsTest, OneClassHasNoAuc) {
  for (const float label : {0.0f, 1.0f}) {
    BinaryMetrics metrics;
    metrics.AddProbabilities(std::vector<float>{0.2f, 0.7f}, std::vector<float>{label, label}, {});
    const auto values = GetValues(metrics);
    EXPECT_TRUE(std::isnan(values.at("auc")));
    EXPECT_TRUE(std::isnan(values.at("auc_interpolated")));
    EXPECT_TRUE(std::isnan(values.at("auc_precision_recall")));
    EXPECT_EQ(values.at("accuracy"), 0.5);
    EXPECT_EQ(values.at("accuracy_baseline"), 1);
    EXPECT_EQ(values.at("precision"), label);
    EXPECT_EQ(values.at("recall"), label / 2);
  }
}

TEST(BinaryMetricsTest, NoRowsAndRowsWithoutWeight) {
  BinaryMetrics none, weightless;
  weightless.AddProbabilities(std::vector<float>{0.5f}, std::vector<float>{1},
                              std::vector<float>{0});
  for (const BinaryMetrics* metrics : {&none, &weightless}) {
    for (const auto& [name, value] : metrics->Values()) {
      const bool is_zero = name == "precision" || name == "recall";
      EXPECT_TRUE(is_zero ? value == 0 : std::isnan(value)) << name << " " << value;
    }
  }
}

TEST(BinaryMetricsTest, ANaNPredictionGivesNoAuc) {
  BinaryMetrics metrics;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  metrics.AddProbabilities(std::vector<float>{0.1f, nan, 0.9f}, std::vector<float>{0, 0, 1}, {});
  const auto values = GetValues(metrics);
  EXPECT_TRUE(std::isnan(values.at("auc")));
  EXPECT_TRUE(std::isnan(values.at("prediction/mean")));
  EXPECT_FALSE(std::isnan(values.at("label/mean")));
}

TEST(BinaryMetricsTest, MergedShardsGiveTheMetricsOfTheWhole) {
  const uint64_t seed = 5;
  RandomStream random(seed, RandomPurpose::kSampleData, 0);
  BinaryMetrics whole, shards[3];
  for (int i = 0; i < 2000; ++i) {
    const std::vector<float> p = {static_cast<float>(random.Below(50)) / 50.0f};
    const std::vector<float> y = {random.Uniform() < p[0] ? 1.0f : 0.0f};
    const std::vector<float> w = {static_cast<float>(random.Below(4)) / 2};
    BinaryMetrics& shard = shards[random.Below(3)];
    whole.AddProbabilities(p, y, w);
    shard.AddProbabilities(p, y, w);
    whole.AddLoss(i, 1);
    shard.AddLoss(i, 1);
  }
  EXPECT_TRUE(shards[2].Merge(shards[0]).ok());
  EXPECT_TRUE(shards[2].Merge(shards[1]).ok());
  EXPECT_EQ(shards[2].rows(), whole.rows());
  const auto expected = GetValues(whole);
  for (const auto& [name, value] : shards[2].Values()) {
    EXPECT_NEAR(value, expected.at(name), 1e-12) << name;
  }
  EXPECT_EQ(GetValues(shards[2]).at("auc"), expected.at("auc"));
}

}  // namespace
}  // namespace muster::metrics
