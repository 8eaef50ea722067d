#include "muster/process/cpu_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <thread>

namespace muster::process {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::vector<int>> Deal(const std::vector<int>& available,
                                   const std::vector<double>& limits) {
  auto dealt = DealCpus(available, limits);
  EXPECT_TRUE(dealt.ok()) << dealt.status();
  return *std::move(dealt);
}

TEST(CpuSetsTest, LimitedTasksShareNoCoreWhileThereAreEnough) {
  EXPECT_THAT(Deal({0, 1, 2, 5, 6}, {2, 1.5}), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 5)));
  EXPECT_THAT(Deal({3, 4}, {1, 1}), ElementsAre(ElementsAre(3), ElementsAre(4)));
  EXPECT_THAT(Deal({3, 4}, {0.1 + 0.2 + 0.7, 0.001}), ElementsAre(ElementsAre(3), ElementsAre(4)));
}

TEST(CpuSetsTest, UnlimitedTasksShareWhatIsLeft) {
  EXPECT_THAT(Deal({0, 1, 2, 3}, {0, 1, 0, 1}),
              ElementsAre(ElementsAre(2, 3), ElementsAre(0), ElementsAre(2, 3), ElementsAre(1)));
  EXPECT_THAT(Deal({0, 1}, {2, 0}), ElementsAre(ElementsAre(0, 1), ElementsAre(0, 1)));
  EXPECT_THAT(Deal({0, 1}, {0, 0}), Each(IsEmpty())) << "nobody asked to be bound";
}

TEST(CpuSetsTest, TooManyWishesAreSharedEvenly) {
  EXPECT_THAT(Deal({0, 1}, {4, 1}), ElementsAre(ElementsAre(0, 1), ElementsAre(0)));
  std::map<int, int> tasks_of;
  for (const auto& cpus : Deal({0, 1, 2, 3}, std::vector<double>(10, 2))) {
    for (int cpu : cpus) ++tasks_of[cpu];
  }
  EXPECT_THAT(tasks_of, ElementsAre(testing::Pair(0, 5), testing::Pair(1, 5), testing::Pair(2, 5),
                                    testing::Pair(3, 5)));
}

TEST(CpuSetsTest, RefusesWhatIsNoLimit) {
  for (double limit : {-1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_EQ(DealCpus({0}, {limit}).status().code(), absl::StatusCode::kInvalidArgument) << limit;
  }
}

TEST(CpuSetsTest, TellsAndPrintsTheMachines) {
  const auto cpus = AvailableCpus();
  ASSERT_TRUE(cpus.ok()) << cpus.status();
  EXPECT_EQ(cpus->size(), std::thread::hardware_concurrency());
  EXPECT_EQ(PrintCpus({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(PrintCpus({}), "");
}

}  // namespace
}  // namespace muster::process
