#include <limits>
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "muster/metrics/metrics.h"

namespace muster::metrics {
namespace {

std::map<std::string, double> ValuesByName(const Metrics& metrics) {
  const std::vector<NamedValue> values = metrics.Values();
  return {values.begin(), values.end()};
}

std::unique_ptr<Metrics> New() {
  return NewMetrics({.kind = "in_batch_softmax", .vector_size = 1}, {.top_k = {2}}, {}).value();
}

// The queries are 1 and the items 4, 3, 2, 1: the rows have the ranks 0 to 3.
const std::vector<float> kLogits = {1, 4, 1, 3, 1, 2, 1, 1};

TEST(InBatchSoftmaxMetricsTest, RowsCountByRewardAndWeight) {
  const auto metrics = New();
  metrics->Add(kLogits, std::vector<float>{1, 2, 0, 1}, std::vector<float>{1, 1, 1, 3});
  auto values = ValuesByName(*metrics);
  EXPECT_DOUBLE_EQ(values.at("accuracy"), 1.0 / 6);
  EXPECT_DOUBLE_EQ(values.at("recall/top_2"), 3.0 / 6);

  const auto merged = New();
  merged->Add(kLogits, std::vector<float>{0, 0, 0, 1}, {});
  merged->AddLoss(7, 4);
  ASSERT_TRUE(merged->Merge(*metrics).ok());
  values = ValuesByName(*merged);
  EXPECT_DOUBLE_EQ(values.at("accuracy"), 1.0 / 7);
  EXPECT_DOUBLE_EQ(values.at("average_loss"), 1);
  EXPECT_FALSE(merged->Merge(*NewMetrics({}, {}, {}).value()).ok());
}

TEST(InBatchSoftmaxMetricsTest, TiesCountAsFoundAndNaNDoesNot) {
  const auto metrics = New();
  metrics->Add(std::vector<float>{1, 2, 1, 2, 1, 1}, std::vector<float>{1, 1, 1}, {});
  EXPECT_DOUBLE_EQ(ValuesByName(*metrics).at("accuracy"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(ValuesByName(*metrics).at("recall/top_2"), 2.0 / 3);
  const auto broken = New();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  broken->Add(std::vector<float>{1, nan, 1, 2}, std::vector<float>{1, 1}, {});
  EXPECT_EQ(ValuesByName(*broken).at("recall/top_2"), 0);
}

}  // namespace
}  // namespace muster::metrics
