#include "muster/ps/server/key_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::ps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(KeySumsTest, SumsInTheOrderOfReplicas) {
  KeySums sums(2);
  const std::vector<int64_t> a = {5, -1}, b = {9, 5};
  const std::vector<float> of_a = {1, 2, 3, 4}, of_b = {10, 20, 30, 40};
  for (int again = 0; again < 2; ++again) {
    const std::vector<KeySums::List> lists = {{a, of_a}, {b, of_b}};
    const KeySums::List sum = sums.Sum(lists);
    EXPECT_THAT(sum.keys, ElementsAre(5, -1, 9));
    EXPECT_THAT(sum.values, ElementsAre(31, 42, 3, 4, 10, 20));
  }
  EXPECT_THAT(sums.Sum({}).keys, IsEmpty());
}

}  // namespace
}  // namespace muster::ps
