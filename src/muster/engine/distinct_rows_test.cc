#include "muster/engine/distinct_rows.h"

#include <limits>
#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/random.h"

namespace muster::engine {
namespace {

using ::testing::ElementsAre;

TEST(DistinctRowsTest, OrderOfFirstAppearance) {
  DistinctRowsFinder finder;
  DistinctRows found;
  for (const int64_t bound : {10, 1 << 30}) {
    const std::vector<int32_t> ids = {7, -1, 3, 7, 9, 3, 0, -1};
    finder.Find(ids, bound, &found);
    EXPECT_THAT(found.rows, ElementsAre(7, 3, 9, 0));
    EXPECT_THAT(found.positions, ElementsAre(0, -1, 1, 0, 2, 1, 3, -1));
    finder.Find({}, bound, &found);
    EXPECT_THAT(found.rows, ElementsAre());
    EXPECT_THAT(found.positions, ElementsAre());
  }
}

// One finder over many lists of many tables: what earlier calls left in its memory must not show.
TEST(DistinctRowsTest, RandomListsAgreeWithAMap) {
  RandomStream random(20250105, RandomPurpose::kSampleData, 3);
  DistinctRowsFinder finder;
  DistinctRows found;
  for (int round = 0; round < 300; ++round) {
    const int64_t bound = round % 3 == 0 ? int64_t{1} << 25 : int64_t{1} << random.Below(9);
    std::vector<int32_t> ids(random.Below(200));
    for (int32_t& id : ids) {
      id = static_cast<int32_t>(random.Below(static_cast<uint64_t>(bound) + 1)) - 1;
      if (round % 3 == 0 && id > 0) id = id % 17 << 20;
    }
    finder.Find(ids, bound, &found);
    std::map<int32_t, int32_t> places;
    std::vector<int32_t> rows, positions;
    for (const int32_t id : ids) {
      if (id < 0) {
        positions.push_back(-1);
        continue;
      }
      const auto [at, is_new] = places.emplace(id, static_cast<int32_t>(rows.size()));
      if (is_new) rows.push_back(id);
      positions.push_back(at->second);
    }
    ASSERT_EQ(found.rows, rows) << "round " << round;
    ASSERT_EQ(found.positions, positions) << "round " << round;
  }
}

TEST(FindBadIdTest, ReturnsTheFirst) {
  EXPECT_EQ(FindBadId(std::vector<int32_t>{0, -1, 4}, 5), -1);
  EXPECT_EQ(FindBadId(std::vector<int32_t>{0, 5, 6}, 5), 1);
  EXPECT_EQ(FindBadId(std::vector<int32_t>{0, 1, -2}, 5), 2);
  EXPECT_EQ(FindBadId(std::vector<int32_t>{-1, 0}, 0), 1);
  EXPECT_EQ(FindBadId({}, 0), -1);
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  for (const int64_t bound : {int64_t{1}, int64_t{kMost}, int64_t{kMost} + 1}) {
    for (const int32_t id : {kLeast, -2, -1, 0, 1, kMost - 1, kMost}) {
      const int64_t bad = id < -1 || id >= bound ? 1 : -1;
      EXPECT_EQ(FindBadId(std::vector<int32_t>{0, id, -1}, bound), bad) << id << " of " << bound;
    }
  }
}

}  // namespace
}  // namespace muster::engine
