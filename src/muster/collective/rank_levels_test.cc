#include "muster/collective/rank_levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "muster/base/random.h"
#include "muster/collective/collectives.h"
#include "muster/collective/test_ranks.h"

namespace muster::collective {
namespace {

using testing::HasSubstr;

TEST(RankLevelsTest, EachRankHasASeatOrASpare) {
  for (int ranks = 1; ranks <= 1100; ++ranks) {
    const RankLevels levels(ranks);
    std::set<int> seats;
    int spare = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      if (levels.IsSpare(rank)) {
        ++spare;
        ASSERT_EQ(levels.GetSpare(rank + 1), rank);
        continue;
      }
      ASSERT_EQ(levels.GetRank(levels.GetSeat(rank)), rank) << ranks;
      seats.insert(levels.GetSeat(rank));
    }
    ASSERT_EQ(static_cast<int>(seats.size()), levels.seats()) << ranks;
    ASSERT_EQ(*seats.rbegin(), levels.seats() - 1) << ranks;
    ASSERT_EQ(spare + levels.seats(), ranks);
    ASSERT_TRUE(spare <= ranks / 7 || ranks <= kMostDirectRanks) << ranks;
    int product = 1;
    for (const RankLevels::Level& level : levels.levels()) {
      ASSERT_EQ(level.stride, product);
      product *= level.radix;
    }
    ASSERT_EQ(product, levels.seats());
  }
}

TEST(RankLevelsTest, TheFirstLevelsAreBetweenNeighbours) {
  const RankLevels levels(32);
  const int seat = 13;
  std::set<int> near;
  for (const auto& level : std::span(levels.levels()).first(3)) {
    near.insert(level.WithDigit(seat, 1 - level.GetDigit(seat)));
  }
  EXPECT_THAT(near, testing::ElementsAre(9, 12, 15));  // of the machine that has 8 to 15
}

TEST(RankLevelsTest, NeighboursAreMutualAndFew) {
  for (const int ranks : {9, 13, 32, 100, 1000}) {
    const int most = 3 * static_cast<int>(std::bit_width(static_cast<unsigned>(ranks))) + 8;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<int> found = GetNeighbours(ranks, rank);
      ASSERT_LE(static_cast<int>(found.size()), most) << ranks;
      for (const int other : found) {
        const std::vector<int> back = GetNeighbours(ranks, other);
        ASSERT_TRUE(std::ranges::binary_search(back, rank))
            << ranks << ": " << rank << " " << other;
      }
    }
  }
}

class ManyRanksTest : public testing::TestWithParam<int> {};

TEST_P(ManyRanksTest, AllReduceSumsAndGivesEveryRankTheSameBytes) {
  const auto n = static_cast<size_t>(GetParam());
  TestRanks ranks(GetParam());
  for (const size_t size : {size_t{1}, size_t{15}, size_t{1000}, size_t{5003}, size_t{40'001}}) {
    std::vector<std::vector<float>> results(n), again(n);
    for (auto* run : {&results, &again}) {
      ranks.RunAll([&](Group& group) {
        std::vector<float>& values = (*run)[static_cast<size_t>(group.rank())];
        RandomStream random(7, RandomPurpose::kSampleData, static_cast<uint64_t>(group.rank()));
        values.resize(size);
        for (float& value : values) value = static_cast<float>(random.Normal());
        return AllReduce(group, values);
      });
    }
    std::vector<double> expected(size);
    for (size_t rank = 0; rank < n; ++rank) {
      RandomStream random(7, RandomPurpose::kSampleData, rank);
      for (double& sum : expected) sum += double{static_cast<float>(random.Normal())};
    }
    for (size_t i = 0; i < size; ++i) ASSERT_NEAR(results[0][i], expected[i], 1e-4) << i;
    for (const auto& result : results) ASSERT_EQ(result, results[0]) << size;
    EXPECT_EQ(results, again) << "the order of a sum depends on timing";
  }
}

TEST_P(ManyRanksTest, AllGatherGivesEveryRankAllBytes) {
  TestRanks ranks(GetParam());
  const auto size_of = [](int rank) { return static_cast<size_t>(rank % 5 * 700 + rank); };
  ranks.RunAll([&](Group& group) {
    std::vector<std::vector<std::byte>> all(static_cast<size_t>(group.size()));
    all[static_cast<size_t>(group.rank())].assign(size_of(group.rank()), std::byte(group.rank()));
    MUSTER_RETURN_IF_ERROR(AllGather(group, 1 << 20, &all));
    for (int rank = 0; rank < group.size(); ++rank) {
      const std::vector<std::byte> expected(size_of(rank), std::byte(rank));
      EXPECT_EQ(all[static_cast<size_t>(rank)], expected) << rank;
    }
    return absl::OkStatus();
  });
}

// Most ranks exchange nothing with the one that dies.
TEST_P(ManyRanksTest, ADeadRankIsNamedToAllOthers) {
  for (const size_t size : {size_t{10}, size_t{100'000}}) {
    TestRanks ranks(GetParam());
    const int dead = GetParam() / 2;
    const std::vector<absl::Status> results = ranks.Run([&](Group& group) -> absl::Status {
      std::vector<float> values(size, 1);
      for (int round = 0; group.rank() != dead || round < 3; ++round) {
        MUSTER_RETURN_IF_ERROR(AllReduce(group, values));
      }
      ranks.Kill(dead);
      return absl::OkStatus();
    });
    for (int rank = 0; rank < GetParam(); ++rank) {
      if (rank == dead) continue;
      const absl::Status& status = results[static_cast<size_t>(rank)];
      EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
      EXPECT_THAT(std::string(ToStd(status.message())), HasSubstr(StrCat("rank ", dead, ": ")));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ManyRanksTest, testing::Values(9, 13, 16, 30, 33));

}  // namespace
}  // namespace muster::collective
