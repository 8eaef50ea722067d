#include "muster/collective/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <span>
#include <tuple>

#include "muster/base/random.h"
#include "muster/collective/rank_levels.h"
#include "muster/collective/test_ranks.h"

namespace muster::collective {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::vector<float> GetValues(int rank, size_t n) {
  RandomStream random(7, RandomPurpose::kSampleData, static_cast<uint64_t>(rank));
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(random.Normal());
  return values;
}

class CollectivesTest : public testing::TestWithParam<int> {};

TEST_P(CollectivesTest, AllReduceSumsAndGivesEveryRankTheSameBytes) {
  const int n = GetParam();
  TestRanks ranks(n);
  const auto block = size_t{65'536} * static_cast<size_t>(n);  // bytes that go around at a time
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{2}, size_t{15}, size_t{16}, size_t{17}, size_t{1000},
        size_t{8192}, size_t{8193}, size_t{100'003}, block, block + 1, 2 * block + 40'001}) {
    std::vector<std::vector<float>> results(static_cast<size_t>(n)), again = results;
    for (auto* run : {&results, &again}) {
      ranks.RunAll([&](Group& group) {
        std::vector<float>& values = (*run)[static_cast<size_t>(group.rank())];
        values = GetValues(group.rank(), size);
        return AllReduce(group, values);
      });
    }
    std::vector<double> expected(size);
    for (int rank = 0; rank < n; ++rank) {
      const std::vector<float> values = GetValues(rank, size);
      for (size_t i = 0; i < size; ++i) expected[i] += double{values[i]};
    }
    for (size_t i = 0; i < size; ++i) ASSERT_NEAR(results[0][i], expected[i], 1e-5) << i;
    for (const auto& result : results) {
      ASSERT_TRUE(std::ranges::equal(std::as_bytes(std::span(result)),
                                     std::as_bytes(std::span(results[0]))))
          << size;
    }
    EXPECT_EQ(results, again) << "the order of a sum depends on timing";
  }
}

TEST_P(CollectivesTest, AllGatherGivesEveryRankAllBytes) {
  const int n = GetParam();
  TestRanks ranks(n);
  const auto size_of = [](int rank, int round) {
    return static_cast<size_t>(rank * 70'000 * (round % 2) + round);
  };
  ranks.RunAll([&](Group& group) {
    std::vector<std::vector<std::byte>> all;
    for (int round = 0; round < 4; ++round) {
      all.resize(static_cast<size_t>(n));
      all[static_cast<size_t>(group.rank())].assign(size_of(group.rank(), round),
                                                    std::byte(group.rank()));
      MUSTER_RETURN_IF_ERROR(AllGather(group, 1 << 20, &all));
      for (int rank = 0; rank < n; ++rank) {
        const std::vector<std::byte> expected(size_of(rank, round), std::byte(rank));
        EXPECT_EQ(all[static_cast<size_t>(rank)], expected) << rank;
      }
    }
    return absl::OkStatus();
  });
}

TEST_P(CollectivesTest, BroadcastGivesTheRootsBytes) {
  TestRanks ranks(GetParam());
  ranks.RunAll([&](Group& group) {
    for (int root = 0; root < group.size(); ++root) {
      for (const size_t size : {0U, 5U, 700'001U}) {
        std::vector<float> values = GetValues(group.rank(), size);
        MUSTER_RETURN_IF_ERROR(Broadcast(group, root, std::as_writable_bytes(std::span(values))));
        EXPECT_EQ(values, GetValues(root, size));
      }
    }
    return absl::OkStatus();
  });
}

TEST_P(CollectivesTest, BroadcastToSomeLeavesOtherRanksAlone) {
  TestRanks ranks(GetParam());
  const int last = GetParam() - 1;
  const std::vector<int> from = {last};
  const std::vector<int> to = last > 1 ? std::vector<int>{0, 1} : std::vector<int>();
  ranks.RunAll([&](Group& group) {
    std::vector<float> values = GetValues(group.rank(), 700'001);
    const bool receives = std::find(to.begin(), to.end(), group.rank()) != to.end();
    if (receives || group.rank() == last) {
      MUSTER_RETURN_IF_ERROR(Broadcast(group, from, to, std::as_writable_bytes(std::span(values))));
    }
    EXPECT_EQ(values, GetValues(receives ? last : group.rank(), 700'001));
    return Barrier(group);
  });
}

TEST_P(CollectivesTest, EachOfSeveralRanksSendsItsShareOfABroadcast) {
  const int n = GetParam();
  if (n < 3) return;
  // Rank 0 receives from all others but the last one, to which it forwards.
  const std::vector<int> to = {0, n - 1};
  std::vector<int> from;
  for (int rank = 1; rank < n - 1; ++rank) from.push_back(rank);
  constexpr size_t kSize = 700'001, kPieces = 11;
  TestRanks ranks(n);
  ranks.RunAll([&](Group& group) {
    const bool receives = std::find(to.begin(), to.end(), group.rank()) != to.end();
    std::vector<float> values = GetValues(receives ? 1000 : 1, kSize);
    MUSTER_RETURN_IF_ERROR(Broadcast(group, from, to, std::as_writable_bytes(std::span(values))));
    EXPECT_EQ(values, GetValues(1, kSize));
    return absl::OkStatus();
  });
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t share = kPieces / from.size() + (i < kPieces % from.size() ? 1 : 0);
    EXPECT_EQ(ranks.traffic(from[i]).messages, static_cast<int64_t>(share)) << "rank " << from[i];
  }
  EXPECT_EQ(ranks.traffic(0).messages, static_cast<int64_t>(kPieces));
}

TEST_P(CollectivesTest, NoRankLeavesABarrierBeforeAllHaveEnteredIt) {
  TestRanks ranks(GetParam());
  std::atomic<int> came = 0;
  ranks.RunAll([&](Group& group) {
    for (int round = 1; round <= 50; ++round) {
      ++came;
      MUSTER_RETURN_IF_ERROR(Barrier(group));
      EXPECT_GE(came, round * group.size());
      MUSTER_RETURN_IF_ERROR(Barrier(group));
    }
    return absl::OkStatus();
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, CollectivesTest, testing::Values(1, 2, 3, 4, 7));

TEST(CollectiveFailureTest, ARankWithTooManyBytesIsRefused) {
  for (const size_t size : {101U, 10'000'000U}) {
    TestRanks ranks(3, {.names = {"chief-0", "worker-0", "worker-1"}});
    const std::vector<absl::Status> results = ranks.Run([&](Group& group) {
      std::vector<std::vector<std::byte>> all(3);
      if (group.rank() != 1) return AllGather(group, 100, &all);
      all[1].resize(size);
      return AllGather(group, size, &all);
    });
    for (const int rank : {0, 2}) {
      const std::string text(ToStd(results[static_cast<size_t>(rank)].message()));
      EXPECT_THAT(text, StartsWith("rank 1 (worker-0): ")) << rank;
      EXPECT_THAT(text, HasSubstr(StrCat("sends ", size, " bytes, but at most 100"))) << rank;
    }
  }
}

// Of 9 ranks each one passes on what it has got from rank 8, which lies.
TEST(CollectiveFailureTest, AMessageWhoseSizesDoNotFitIsRefused) {
  constexpr uint64_t kMost = 100;
  struct Lie {
    std::vector<uint64_t> sizes;
    size_t bytes = 0;  // after them
  };
  for (const Lie& lie : {Lie{{101}, 0}, Lie{{~uint64_t{0}}, 50}, Lie{{10}, 9}, Lie{{10}, 11},
                         Lie{{}, 4}, Lie{{100}, 101}}) {
    TestRanks ranks(kMostDirectRanks + 1);
    const std::vector<absl::Status> results = ranks.Run([&](Group& group) {
      std::vector<std::vector<std::byte>> all(static_cast<size_t>(group.size()));
      if (group.rank() != 8) return AllGather(group, kMost, &all);
      std::vector<std::byte> message(lie.sizes.size() * sizeof(uint64_t) + lie.bytes);
      std::ranges::copy(std::as_bytes(std::span(lie.sizes)), message.begin());
      std::vector<std::byte> got;
      MUSTER_RETURN_IF_ERROR(group.Exchange(7, message, 0, 1000, &got));
      return group.Receive(7, 1, [](ConstBytes, size_t) {});  // what rank 7 says of it
    });
    EXPECT_THAT(ToStd(results[7].message()), StartsWith("rank 8: "));
    for (const absl::Status& each : std::span(results).first(8)) EXPECT_FALSE(each.ok());
  }
}

absl::Status ReduceIndefinitely(Group& group, size_t size) {
  std::vector<float> values(size, 1);
  while (true) MUSTER_RETURN_IF_ERROR(AllReduce(group, values));
}

TEST(CollectiveFailureTest, ADeadRankIsNamedToAllOthers) {
  for (const size_t size : {100U, 1'000'000U}) {
    TestRanks ranks(4, {.names = {"chief-0", "worker-0", "worker-1", "worker-2"}});
    std::atomic<int> rounds = 0;
    const std::vector<absl::Status> results = ranks.Run([&](Group& group) {
      if (group.rank() != 2) return ReduceIndefinitely(group, size);
      std::vector<float> values(size, 1);
      for (; rounds < 3; ++rounds) MUSTER_RETURN_IF_ERROR(AllReduce(group, values));
      ranks.Kill(2);
      return absl::OkStatus();
    });
    for (const int rank : {0, 1, 3}) {
      const absl::Status& status = results[static_cast<size_t>(rank)];
      EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
      EXPECT_THAT(ToStd(status.message()), StartsWith("rank 2 (worker-1): ")) << rank;
    }
  }
}

TEST(CollectiveFailureTest, AnErrorOfOneRankReachesAllUnchanged) {
  TestRanks ranks(3);
  const std::vector<absl::Status> results = ranks.Run([&](Group& group) {
    if (group.rank() == 1) return group.Fail(absl::DataLossError("part-7: record at byte 12"));
    return ReduceIndefinitely(group, 200'000);
  });
  for (const absl::Status& status : results) {
    EXPECT_EQ(status, absl::AbortedError("rank 1: part-7: record at byte 12"));
  }
  ranks.Run([&](Group& group) {
    EXPECT_EQ(Barrier(group), results[0]) << "an ended group stays ended";
    return absl::OkStatus();
  });
}

TEST(CollectiveFailureTest, AnInterruptEndsACollective) {
  TestRanks ranks(2);
  const std::vector<absl::Status> results = ranks.Run([&](Group& group) {
    if (group.rank() == 1) {
      ranks.interrupt(0).Set(absl::AbortedError("generation 3: worker-1 was silent for 10 s"));
      return absl::OkStatus();
    }
    return ReduceIndefinitely(group, 1'000'000);
  });
  EXPECT_THAT(ToStd(results[0].message()), HasSubstr("silent for 10 s"));
}

TEST(CollectiveFailureTest, DifferentSizesAreAnErrorAndNotADeadlock) {
  TestRanks ranks(3);
  const std::vector<absl::Status> results = ranks.Run([&](Group& group) {
    std::vector<float> values(group.rank() == 1 ? 200'000 : 200'016, 1);
    return AllReduce(group, values);
  });
  for (const absl::Status& status : results) {
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  }
}

TEST(CollectiveFailureTest, ARankThatDoesNotTakePartIsNamedAfterTheTimeout) {
  TestRanks ranks(2, {.timeout_seconds = 0.05});
  const std::vector<absl::Status> results = ranks.Run(
      [&](Group& group) { return group.rank() == 1 ? absl::OkStatus() : Barrier(group); });
  EXPECT_THAT(ToStd(results[0].message()), StartsWith("rank 1: "));
}

// Ranks of a group that ended within a collective continue on the same connections; the rank that
// failed is told by the others' words, and all messages of the first group are gone.
TEST(GroupTest, AGroupLeavesItsChannelsToTheNextOne) {
  constexpr int kRanks = 3;
  std::mutex mutex;
  std::map<std::pair<int, int>, std::unique_ptr<Channel>> retired;  // by owner and other end
  std::vector<std::unique_ptr<Group>> groups;
  std::vector<std::unique_ptr<Interrupt>> interrupts;
  const auto options = [&](int owner) {
    return GroupOptions{.retire = [&, owner](int other, std::unique_ptr<Channel> channel) {
      const std::lock_guard lock(mutex);
      retired[{owner, other}] = std::move(channel);
    }};
  };
  for (int rank = 0; rank < kRanks; ++rank) {
    for (int other = 0; other < rank; ++other) {
      int fds[2];
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
      for (const auto& [owner, end, fd] :
           {std::tuple(rank, other, fds[0]), std::tuple(other, rank, fds[1])}) {
        auto stream = net::transport::SocketStream::Create(process::Descriptor(fd), "unix:");
        retired[{owner, end}] = std::make_unique<Channel>(std::move(stream).value());
      }
    }
  }
  for (uint64_t generation = 1; generation <= 3; ++generation) {
    interrupts.clear();
    for (int rank = 0; rank < kRanks; ++rank) interrupts.push_back(Interrupt::Create().value());
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        std::vector<std::unique_ptr<Channel>> channels(kRanks);
        const Interrupt& interrupt = *interrupts[static_cast<size_t>(rank)];
        for (int other = 0; other < kRanks; ++other) {
          if (other == rank) continue;
          auto& channel = channels[static_cast<size_t>(other)];
          {
            const std::lock_guard lock(mutex);
            channel = std::move(retired.at({rank, other}));
          }
          const absl::Status renewed =
              channel->Renew(generation, process::Deadline::After(60), interrupt);
          EXPECT_TRUE(renewed.ok()) << renewed;
        }
        Group group(rank, std::move(channels), interrupt, options(rank));
        std::vector<float> values(3'000'000, 1);
        if (generation == 2 && rank == 1) {
          group.Fail(absl::DataLossError("a bad record")).IgnoreError();
          return;
        }
        const absl::Status status = AllReduce(group, values);
        EXPECT_EQ(status.ok(), generation != 2) << status;
        if (!status.ok()) {
          EXPECT_EQ(status.message(), "rank 1: a bad record");
          // A rank whose connections were full has not heard of it: the membership tells it.
          for (const auto& each : interrupts) each->Set(status);
        } else {
          EXPECT_EQ(values, std::vector<float>(values.size(), kRanks));
        }
      });
    }
  }
}

}  // namespace
}  // namespace muster::collective
