#include "muster/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace muster {
namespace {

TEST(ThreadCrewTest, EveryMemberRunsOnceARound) {
  for (int size : {1, 2, 4}) {
    ThreadCrew crew(size);
    std::vector<int> counts(size);
    for (int round = 0; round < 1000; ++round) crew.Run([&](int member) { ++counts[member]; });
    for (int count : counts) EXPECT_EQ(count, 1000);
  }
}

TEST(ThreadCrewTest, BarrierSeparatesPhases) {
  ThreadCrew crew(3);
  std::vector<int> values(3);
  for (int round = 1; round <= 200; ++round) {
    std::atomic<int> wrong{0};
    crew.Run([&](int member) {
      values[member] = round;
      crew.Barrier();
      for (int value : values) wrong += value != round;
      crew.Barrier();
    });
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace
}  // namespace muster
