#include "muster/launch/kubernetes/work_queue.h"

#include <thread>

#include "gtest/gtest.h"

namespace muster::launch::kubernetes {
namespace {

using Outcome = WorkQueue::Outcome;

TEST(WorkQueueTest, AKeyIsThereOnce) {
  const FakeClock clock;
  WorkQueue queue(clock, {});
  queue.Add("a");
  queue.Add("b");
  queue.Add("a");
  EXPECT_EQ(queue.size(), 2U);
  EXPECT_EQ(queue.Take(), "a");
  EXPECT_EQ(queue.Take(), "b");
  queue.Add("a");  // while somebody has it
  EXPECT_EQ(queue.size(), 0U);
  queue.Done("a", Outcome::kDone);
  EXPECT_EQ(queue.Take(), "a");
}

TEST(WorkQueueTest, TheEarlierTimeCounts) {
  FakeClock clock;
  WorkQueue queue(clock, {});
  queue.Add("a", 60);
  queue.Add("b", 30);
  queue.Add("b", 90);
  queue.Add("a", 10);
  clock.Advance(30);
  EXPECT_EQ(queue.Take(), "a");
  EXPECT_EQ(queue.Take(), "b");
}

TEST(WorkQueueTest, ATimeThatIsGivenDuringATurnIsKept) {
  FakeClock clock;
  WorkQueue queue(clock, {});
  queue.Add("a");
  EXPECT_EQ(queue.Take(), "a");
  queue.Add("a", 60);
  queue.Done("a", Outcome::kDone);
  queue.Add("b", 59);
  clock.Advance(61);
  EXPECT_EQ(queue.Take(), "b");
  EXPECT_EQ(queue.Take(), "a");
}

TEST(WorkQueueTest, AFailedKeyWaitsLongerEachTime) {
  FakeClock clock;
  WorkQueue queue(clock, {.first_backoff = 1, .longest_backoff = 3});
  queue.Add("a");
  for (const double seconds : {1, 2, 3, 3}) {
    EXPECT_EQ(queue.Take(), "a");
    queue.Done("a", Outcome::kFailed);
    queue.Add("a");  // a change does not make it due earlier
    queue.Add("probe", seconds - 0.5);
    clock.Advance(seconds);
    EXPECT_EQ(queue.Take(), "probe");
    queue.Done("probe", Outcome::kDone);
  }
}

TEST(WorkQueueTest, StopWakesWhoWaits) {
  const FakeClock clock;
  WorkQueue queue(clock, {});
  std::thread stopper([&] { queue.Stop(); });
  EXPECT_EQ(queue.Take(), std::nullopt);
  stopper.join();
}

}  // namespace
}  // namespace muster::launch::kubernetes
