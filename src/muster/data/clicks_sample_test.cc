#include "muster/data/clicks_sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "muster/base/random.h"
#include "muster/base/strings.h"

namespace muster::data {
namespace {

std::string Csv(const ClickSampler& sampler, uint64_t row) {
  std::string text;
  ClickSampler::AppendCsv(sampler.Row(row), &text);
  return text;
}

TEST(ClickSamplerTest, RowsAreAFunctionOfSeedAndNumber) {
  const ClickSampler first(7), again(7), other(8);
  for (uint64_t row : {5, 0, 1'000'000'000}) {
    EXPECT_EQ(Csv(first, row), Csv(again, row));
    EXPECT_NE(Csv(first, row), Csv(other, row));
  }
  EXPECT_NE(Csv(first, 1), Csv(first, 2));
}

TEST(ClickSamplerTest, RowsHaveFortyCells) {
  const ClickSampler sampler(1);
  const std::string header = ClickSampler::Header();
  EXPECT_TRUE(header.starts_with("label,I1,") && header.ends_with(",C26\n")) << header;
  for (const std::string& line : {header, Csv(sampler, 0), Csv(sampler, 1)}) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 39) << line;
  }
}

TEST(ClickSamplerTest, CardinalitiesAreSpreadEvenly) {
  EXPECT_EQ(ClickSampler::Cardinality(0), 2);
  EXPECT_EQ(ClickSampler::Cardinality(25), 100'000);
  for (int c = 1; c < kClickCategories; ++c) {
    EXPECT_GT(ClickSampler::Cardinality(c), ClickSampler::Cardinality(c - 1));
  }
}

TEST(ClickSamplerTest, RanksFollowZipf) {
  const ClickSampler sampler(3);
  const int rows = 20'000, column = 12;
  std::vector<double> counts(ClickSampler::Cardinality(column));
  double present = 0, sum = 0;
  for (int i = 0; i < rows; ++i) {
    const int32_t rank = sampler.Row(i).categories[column];
    if (rank < 0) continue;
    ++counts.at(rank);
    ++present;
  }
  for (size_t k = 0; k < counts.size(); ++k) sum += std::pow(k + 1, -1.1);
  EXPECT_NEAR(present / rows, 0.92, 0.01);
  for (size_t k : {0, 1, 4, 20}) {
    const double expected = present * std::pow(k + 1, -1.1) / sum;
    EXPECT_NEAR(counts[k], expected, 5 * std::sqrt(expected)) << k;
  }
}

// A quarter of the rows are clicks, and the true model reaches an AUC of about 0.80.
TEST(ClickSamplerTest, BaseRateAndBestScore) {
  const ClickSampler sampler(11);
  std::vector<double> probabilities;
  std::vector<uint8_t> labels;
  double expected_loss = 0;
  for (int i = 0; i < 40'000; ++i) {
    const ClickRow row = sampler.Row(i);
    const double p = row.probability;
    probabilities.push_back(p);
    labels.push_back(row.label);
    expected_loss -= (p * std::log(p) + (1 - p) * std::log(1 - p)) / 40'000;
  }
  const BestScore score = ScoreTruth(probabilities, labels);
  EXPECT_NEAR(score.positives, 0.25, 0.01);
  EXPECT_NEAR(score.auc, 0.80, 0.01);
  EXPECT_NEAR(score.log_loss, expected_loss, 4 * score.log_loss_error);
}

TEST(ScoreTruthTest, CountsPairs) {
  // Positives 0.9, 0.5, 0.4 with negatives 0.5, 0.1 score 1 + 1, 0.5 + 1, 0 + 1 of 6 pairs.
  const std::vector<double> p = {0.9, 0.5, 0.5, 0.1, 0.4};
  const std::vector<uint8_t> y = {1, 1, 0, 0, 1};
  const BestScore score = ScoreTruth(p, y);
  EXPECT_DOUBLE_EQ(score.auc, 4.5 / 6);
  EXPECT_DOUBLE_EQ(score.positives, 0.6);
  EXPECT_DOUBLE_EQ(score.log_loss,
                   -(std::log(0.9) + 2 * std::log(0.5) + std::log(0.9) + std::log(0.4)) / 5);
  // The placements are 1, 0.75, 0.5 for the positives and 0.5, 1 for the negatives (computed by
  // hand).
  EXPECT_NEAR(score.auc_error, std::sqrt(0.0625 / 3 + 0.125 / 2), 1e-12);
  EXPECT_TRUE(std::isnan(ScoreTruth(p, std::vector<uint8_t>(5, 1)).auc));
}

// The standard error is the spread of the score over samples.
TEST(ScoreTruthTest, ErrorsAreTheSpreadOverSamples) {
  RandomStream random(1, RandomPurpose::kSampleData, 0);
  const int samples = 200, rows = 400;
  double sum = 0, squares = 0, announced = 0;
  for (int s = 0; s < samples; ++s) {
    std::vector<double> p;
    std::vector<uint8_t> y;
    for (int i = 0; i < rows; ++i) {
      p.push_back(1 / (1 + std::exp(-1.5 * random.Normal())));
      y.push_back(random.UniformDouble() < p.back());
    }
    const BestScore score = ScoreTruth(p, y);
    sum += score.auc;
    squares += score.auc * score.auc;
    announced += score.auc_error / samples;
  }
  const double spread = std::sqrt(squares / samples - sum * sum / samples / samples);
  EXPECT_NEAR(announced / spread, 1.0, 0.2);
}

}  // namespace
}  // namespace muster::data
