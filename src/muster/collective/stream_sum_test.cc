#include "muster/collective/stream_sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "muster/collective/collectives.h"
#include "muster/collective/test_ranks.h"

namespace muster::collective {
namespace {

using testing::HasSubstr;

float GetValue(int rank, size_t i) {
  return static_cast<float>(static_cast<int>((i * 7 + static_cast<size_t>(rank) * 13) % 1001) -
                            500) /
         3.0F;
}

// Gives values `piece` at a time, as a backward pass does.
absl::Status Give(StreamSum& sum, Group& group, std::vector<float>& values, size_t piece) {
  for (size_t begin = 0; begin < values.size(); begin += piece) {
    const size_t end = std::min(begin + piece, values.size());
    for (size_t i = begin; i < end; ++i) values[i] = GetValue(group.rank(), i);
    sum.Ready(end);
  }
  return sum.Finish();
}

TEST(StreamSumTest, TheBytesDoNotDependOnWhichRanksSumEarly) {
  for (const int n : {1, 2, 3}) {
    const size_t turn = RingTurnFloats(n);
    for (const size_t size : {size_t{0}, size_t{10}, turn, turn + 5, 3 * turn + 1000}) {
      std::vector<std::vector<float>> first;
      for (const int early : {0, 1, 2, 7}) {  // one bit for each rank
        TestRanks ranks(n);
        std::vector<std::vector<float>> all(static_cast<size_t>(n), std::vector<float>(size, -1));
        ranks.RunAll([&](Group& group) {
          std::vector<float>& values = all[static_cast<size_t>(group.rank())];
          StreamSum sum;
          for (int again = 0; again < 2; ++again) {
            sum.Begin(group, values, (early >> group.rank() & 1) != 0);
            MUSTER_RETURN_IF_ERROR(Give(sum, group, values, 10'007));
            MUSTER_RETURN_IF_ERROR(Barrier(group));  // the caller may use the group again
          }
          return absl::OkStatus();
        });
        for (const auto& values : all) EXPECT_EQ(values, all[0]);
        if (first.empty()) first = all;
        EXPECT_EQ(all, first) << n << " ranks, " << size << " values";
      }
      for (size_t i = 0; i < size; i += 997) {
        float expected = 0;
        for (int rank = 0; rank < n; ++rank) expected += GetValue(rank, i);
        EXPECT_NEAR(first[0][i], expected, 1e-3);
      }
    }
  }
}

// Each rank gives its last values only when its first ones are summed: if sums did not begin early,
// no rank would ever continue.
TEST(StreamSumTest, TheFirstValuesAreSummedBeforeTheLastAreReady) {
  TestRanks ranks(2);
  const size_t turn = RingTurnFloats(2);
  ranks.RunAll([&](Group& group) -> absl::Status {
    std::vector<float> values(2 * turn, static_cast<float>(group.rank() + 1));
    StreamSum sum;
    sum.Begin(group, values, /*early=*/true);
    sum.Ready(turn + 1);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (sum.reduced() < turn) {
      if (std::chrono::steady_clock::now() > deadline) {
        return absl::DeadlineExceededError("nothing was summed");
      }
      std::this_thread::yield();
    }
    EXPECT_EQ(sum.reduced(), turn);
    MUSTER_RETURN_IF_ERROR(sum.Finish());
    EXPECT_THAT(values, testing::Each(3.0F));
    return absl::OkStatus();
  });
}

TEST(StreamSumTest, ARankThatAbandonsASumTellsTheOthersWhy) {
  TestRanks ranks(3);
  const auto results = ranks.Run([&](Group& group) -> absl::Status {
    std::vector<float> values(4 * RingTurnFloats(3), 1);
    StreamSum sum;
    sum.Begin(group, values, /*early=*/true);
    sum.Ready(RingTurnFloats(3) + 1);
    if (group.rank() == 1) {
      sum.Abandon();
      return group.Fail(absl::InvalidArgumentError("row 7: no label"));
    }
    sum.Ready(values.size());
    return sum.Finish();
  });
  for (const absl::Status& status : results) {
    EXPECT_THAT(status.message(), HasSubstr("rank 1: row 7: no label"));
  }
}

TEST(StreamSumTest, ADeathDuringASumIsAnErrorOfFinish) {
  TestRanks ranks(2);
  const auto results = ranks.Run([&](Group& group) -> absl::Status {
    if (group.rank() == 1) {
      ranks.Kill(1);
      return absl::OkStatus();
    }
    std::vector<float> values(2 * RingTurnFloats(2), 1);
    StreamSum sum;
    sum.Begin(group, values, /*early=*/true);
    sum.Ready(values.size());
    return sum.Finish();
  });
  EXPECT_TRUE(absl::IsAborted(results[0])) << results[0];
  EXPECT_THAT(results[0].message(), HasSubstr("rank 1"));
}

}  // namespace
}  // namespace muster::collective
