#include "muster/train/loop/hooks/histogram.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/random.h"

namespace muster::train {
namespace {

using ::testing::ElementsAre;

MatrixView GetColumn(const std::vector<float>& values) {
  return {values.data(), 1, static_cast<int64_t>(values.size()),
          static_cast<int64_t>(values.size())};
}

TEST(HistogramTest, BucketsCountTheNumbersBetweenTheirLimits) {
  RandomStream random(20261121, RandomPurpose::kSampleData, 0);
  std::vector<float> values(5000);
  for (float& x : values) x = static_cast<float>(random.Normal());
  const formats::Histogram histogram = MakeHistogram(GetColumn(values));
  ASSERT_EQ(histogram.limits.size(), 30u);
  ASSERT_EQ(histogram.buckets.size(), 30u);
  EXPECT_EQ(histogram.min, *std::min_element(values.begin(), values.end()));
  EXPECT_EQ(histogram.max, *std::max_element(values.begin(), values.end()));
  EXPECT_EQ(histogram.limits.back(), histogram.max);
  EXPECT_EQ(histogram.count, 5000);
  EXPECT_NEAR(histogram.sum, std::accumulate(values.begin(), values.end(), 0.0), 1e-9);
  double squares = 0;
  for (const float x : values) squares += static_cast<double>(x) * x;
  EXPECT_NEAR(histogram.sum_of_squares, squares, 1e-9);
  double left = histogram.min, total = 0;
  for (size_t i = 0; i < 30; ++i) {
    const double right = histogram.limits[i];
    const auto inside = std::count_if(values.begin(), values.end(), [&](float x) {
      return x >= left && (i == 29 ? x <= right : x < right);
    });
    // A number on a limit may fall to either side.
    EXPECT_NEAR(histogram.buckets[i], static_cast<double>(inside), 1) << i;
    total += histogram.buckets[i];
    left = right;
  }
  EXPECT_EQ(total, 5000);
}

TEST(HistogramTest, EqualValuesMakeOneBucket) {
  const formats::Histogram histogram = MakeHistogram(GetColumn({0.25f, 0.25f, 0.25f}));
  EXPECT_THAT(histogram.limits, ElementsAre(0.25));
  EXPECT_THAT(histogram.buckets, ElementsAre(3));
  EXPECT_EQ(histogram.min, 0.25);
  EXPECT_EQ(histogram.sum, 0.75);
}

TEST(HistogramTest, NumbersThatAreNotFiniteAreLeftOut) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const formats::Histogram histogram =
      MakeHistogram(GetColumn({NAN, -3.4e38f, kInfinity, 3.4e38f, -kInfinity}));
  EXPECT_EQ(histogram.count, 2);
  EXPECT_EQ(histogram.min, -3.4e38f);
  EXPECT_EQ(histogram.buckets.front(), 1);
  EXPECT_EQ(histogram.buckets.back(), 1);
  EXPECT_EQ(MakeHistogram(GetColumn({NAN})).count, 0);
  EXPECT_EQ(MakeHistogram({}).count, 0);
}

TEST(HistogramTest, ReadsOnlyTheColumnsOfTheMatrix) {
  const std::vector<float> values = {0, 1, 99, 2, 0, 99};
  const MatrixView matrix{values.data(), 2, 2, 3};
  EXPECT_EQ(MakeHistogram(matrix).max, 2);
  EXPECT_EQ(MakeHistogram(matrix).count, 4);
  EXPECT_EQ(FractionOfZeros(matrix), 0.5);
  EXPECT_EQ(FractionOfZeros({}), 0);
}

TEST(HistogramTest, ASampleTakesRowsFromTheWholeMatrix) {
  std::vector<float> values(1000 * 2);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i / 2);
  const MatrixView matrix{values.data(), 1000, 2, 2};
  EXPECT_EQ(matrix.Sample(2000).rows, 1000);
  const MatrixView sample = matrix.Sample(300);
  EXPECT_EQ(sample.rows, 143);  // every 7th
  EXPECT_EQ(MakeHistogram(sample).max, 142 * 7);
  EXPECT_EQ(matrix.Sample(1).rows, 1);
}

}  // namespace
}  // namespace muster::train
