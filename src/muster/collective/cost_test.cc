// Compares what each rank sends in a collective with the cost model of docs/scale.md.
#include <gtest/gtest.h>

#include <bit>

#include "muster/collective/collectives.h"
#include "muster/collective/cost_model.h"
#include "muster/collective/test_ranks.h"

namespace muster::collective {
namespace {

using net::transport::FramedBytes;
using Traffic = TestRanks::Traffic;

constexpr int64_t kPiece = int64_t{256} << 10;

int64_t Pieces(int64_t bytes, int64_t piece) { return (bytes + piece - 1) / piece; }

class CostTest : public testing::TestWithParam<int> {
 protected:
  int64_t n() const { return GetParam(); }
  CostModel model() const { return {.ranks = GetParam()}; }
  // Returns what each rank has sent in one call of `fn`.
  static std::vector<Traffic> Measure(const std::function<absl::Status(Group&)>& fn) {
    TestRanks ranks(GetParam());
    ranks.RunAll(fn);
    std::vector<Traffic> traffic;
    for (int rank = 0; rank < GetParam(); ++rank) traffic.push_back(ranks.traffic(rank));
    return traffic;
  }
};

TEST_P(CostTest, AllGatherSendsOneMessageInEachRound) {
  const size_t size = 24;
  for (const Traffic& sent : Measure([&](Group& group) {
         const std::vector<std::byte> mine(size);
         std::vector<std::byte> all(size * static_cast<size_t>(group.size()));
         return AllGather(group, mine, all);
       })) {
    EXPECT_EQ(sent.messages, model().rounds());
    EXPECT_EQ(sent.bytes, model().gathered(size));
  }
}

TEST_P(CostTest, AllGatherOfDifferentSizesSendsAsManyMessages) {
  const size_t size = 1000;
  for (const Traffic& sent : Measure([&](Group& group) {
         std::vector<std::vector<std::byte>> all(static_cast<size_t>(group.size()));
         all[static_cast<size_t>(group.rank())].resize(size);
         return AllGather(group, 1 << 20, &all);
       })) {
    EXPECT_EQ(sent.messages, model().rounds());
    // What is passed on has the size of each piece.
    const int64_t sizes = model().is_large() ? sizeof(uint64_t) : 0;
    EXPECT_EQ(sent.bytes, model().gathered(sizes + static_cast<int64_t>(size)));
  }
}

TEST_P(CostTest, ASmallAllReduceIsAnAllGather) {
  const size_t floats = 256;  // 1 KiB to each of 31 others is below the limit of 32 KiB
  for (const Traffic& sent : Measure([&](Group& group) {
         std::vector<float> values(floats);
         return AllReduce(group, values);
       })) {
    EXPECT_EQ(sent.messages, model().rounds());
    EXPECT_EQ(sent.bytes, model().gathered(floats * sizeof(float)));
  }
}

// By levels a rank gives half of what it has at each level, with radices of 2, instead of a part of
// it to each other rank.
TEST_P(CostTest, ALargeAllReduceSendsItsValuesNotQuiteTwice) {
  const int64_t turns = model().is_large() ? 1 : 3;
  const int64_t bytes = turns * n() * kPiece;  // a piece of 256 KiB for each rank in each turn
  for (const Traffic& sent : Measure([&](Group& group) {
         std::vector<float> values(static_cast<size_t>(bytes) / sizeof(float));
         return AllReduce(group, values);
       })) {
    EXPECT_EQ(sent.messages, 2 * model().halvings() * turns);
    EXPECT_EQ(sent.frames, 2 * (n() - 1) * turns);
    EXPECT_EQ(sent.bytes, 2 * (n() - 1) * turns * FramedBytes(kPiece));
    // Less than twice the values, however many ranks there are.
    EXPECT_LT(static_cast<double>(sent.bytes), 2.001 * static_cast<double>(bytes));
  }
}

TEST_P(CostTest, BroadcastForwardsEachByteOnce) {
  const int64_t bytes = 3 * kPiece + 1000;
  const std::vector<Traffic> traffic = Measure([&](Group& group) {
    std::vector<std::byte> values(static_cast<size_t>(bytes));
    return Broadcast(group, 0, values);
  });
  for (size_t rank = 0; rank < traffic.size(); ++rank) {
    const bool last = rank + 1 == traffic.size();
    EXPECT_EQ(traffic[rank].messages, last ? 0 : Pieces(bytes, kPiece));
    EXPECT_EQ(traffic[rank].bytes, last ? 0 : 3 * FramedBytes(kPiece) + FramedBytes(1000));
  }
}

TEST_P(CostTest, BarrierSendsLog2MessagesPerRank) {
  for (const Traffic& sent : Measure([&](Group& group) { return Barrier(group); })) {
    EXPECT_EQ(sent.messages, std::bit_width(static_cast<uint64_t>(n() - 1)));
    EXPECT_EQ(sent.bytes, sent.messages * FramedBytes(0));
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CostTest, testing::Values(2, 3, 8, 32));

}  // namespace
}  // namespace muster::collective
