#include "muster/launch/kubernetes/api/call_crew.h"

#include <barrier>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "muster/base/mutex.h"

namespace muster::launch::kubernetes {
namespace {

TEST(CallCrew, MakesEachCallOnce) {
  CallCrew crew(5);
  for (const size_t count : {0, 1, 5, 200}) {
    Mutex mutex;
    std::multiset<size_t> made;
    const absl::Status status = crew.Run(count, [&](size_t number) {
      const MutexLock lock(&mutex);
      made.insert(number);
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(made.size(), count);
    EXPECT_EQ(std::set<size_t>(made.begin(), made.end()).size(), count);
  }
}

TEST(CallCrew, CallsAtTheSameTime) {
  CallCrew crew(4);
  std::barrier meeting(4);
  const absl::Status status = crew.Run(12, [&](size_t) {
    meeting.arrive_and_wait();
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(CallCrew, ManyCallersHaveNoHelpers) {
  CallCrew crew(2);
  std::atomic<int> now = 0, most = 0;
  const auto caller = [&] {
    const absl::Status status = crew.Run(50, [&](size_t) {
      most = std::max<int>(most, ++now);
      std::this_thread::yield();
      --now;
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  };
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 3; ++i) callers.emplace_back(caller);
  }
  EXPECT_LE(most, 4) << "three callers, and a helper of the first one";
  caller();
  EXPECT_LE(most, 4);
}

TEST(CallCrew, OneAtATimeCallsAreInOrderAndEndWithTheFirstFailure) {
  CallCrew crew(1);
  std::vector<size_t> made;
  const absl::Status status = crew.Run(10, [&](size_t number) {
    made.push_back(number);
    return number == 3 ? absl::AbortedError("the fourth") : absl::OkStatus();
  });
  EXPECT_EQ(status.message(), "the fourth");
  EXPECT_EQ(made, (std::vector<size_t>{0, 1, 2, 3}));
}

TEST(CallCrew, NoCallBeginsAfterAFailure) {
  CallCrew crew(3);
  std::atomic<int> calls = 0;
  const absl::Status status = crew.Run(100'000, [&](size_t) {
    ++calls;
    return absl::UnavailableError("away");
  });
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_LE(calls, 3);
}

}  // namespace
}  // namespace muster::launch::kubernetes
