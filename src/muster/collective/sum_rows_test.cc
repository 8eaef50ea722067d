#include "muster/collective/sum_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::collective {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SumRowsTest, AddsRowsThatSeveralListsHave) {
  SumRows sum(/*table_rows=*/10, /*cols=*/2);
  const std::vector<int32_t> a = {7, 2}, b = {3, 7}, none = {};
  const std::vector<float> va = {1, 2, 3, 4}, vb = {10, 20, 30, 40};
  for (int again = 0; again < 2; ++again) {
    const RowList all = sum.Sum(std::vector<RowList>{{a, va}, {none, {}}, {b, vb}});
    EXPECT_THAT(all.rows, ElementsAre(7, 2, 3));
    EXPECT_THAT(all.values, ElementsAre(31, 42, 3, 4, 10, 20));
  }
  EXPECT_THAT(sum.Sum({}).rows, IsEmpty());
}

}  // namespace
}  // namespace muster::collective
