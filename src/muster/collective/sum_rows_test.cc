#include "muster/collective/sum_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace muster::collective {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

TEST(SumRowsTest, AddsRowsThatSeveralListsHave) {
  SumRows sum;
  math::RowNumbers numbers;
  const std::vector<int32_t> a = {7, 2}, b = {3, 7}, none = {};
  const std::vector<float> va = {1, 2, 3, 4}, vb = {10, 20, 30, 40};
  for (int again = 0; again < 2; ++again) {
    const RowList all = sum.Sum(std::vector<RowList>{{a, va}, {none, {}}, {b, vb}},
                                /*table_rows=*/10, /*cols=*/2, numbers);
    EXPECT_THAT(all.rows, ElementsAre(7, 2, 3));
    EXPECT_THAT(all.values, ElementsAre(31, 42, 3, 4, 10, 20));
  }
  EXPECT_THAT(sum.Sum({}, 10, 2, numbers).rows, IsEmpty());
}

// Compares the sums with those of a map, for many rows, lists and tables, in several calls in a
// row.
TEST(SumRowsTest, IsTheSumOfEachRow) {
  SumRows sum;
  math::RowNumbers numbers;
  for (const int64_t cols : {1, 3, 16}) {
    constexpr int64_t kTableRows = 500;
    std::mt19937 random(static_cast<uint32_t>(cols));
    for (int call = 0; call < 50; ++call) {
      std::vector<std::vector<int32_t>> rows(4);
      std::vector<std::vector<float>> values(4);
      std::vector<RowList> lists;
      std::vector<int32_t> order;
      std::map<int32_t, std::vector<float>> expected;
      for (size_t i = 0; i < rows.size(); ++i) {
        rows[i].resize(kTableRows);
        std::iota(rows[i].begin(), rows[i].end(), 0);
        std::shuffle(rows[i].begin(), rows[i].end(), random);
        rows[i].resize(random() % 200);
        for (const int32_t row : rows[i]) {
          auto [found, made] = expected.try_emplace(row, std::vector<float>(cols, 0));
          if (made) order.push_back(row);
          for (float& each : found->second) {
            values[i].push_back(static_cast<float>(random() % 1000));
            each += values[i].back();
          }
        }
        lists.push_back({rows[i], values[i]});
      }
      const RowList all = sum.Sum(lists, kTableRows, cols, numbers);
      ASSERT_THAT(all.rows, ElementsAreArray(order));
      for (size_t i = 0; i < order.size(); ++i) {
        ASSERT_THAT(all.values.subspan(i * cols, cols), ElementsAreArray(expected[order[i]]));
      }
    }
  }
}

}  // namespace
}  // namespace muster::collective
