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

TEST(WorkQueueTest, ANewKeyComesBeforeThoseThatHadATurnForAsLongAsItsHeadStart) {
  FakeClock clock;
  clock.Advance(10);
  WorkQueue queue(clock, {.head_start = 1});
  queue.Add("old");
  EXPECT_EQ(queue.Take(), "old");
  queue.Done("old", Outcome::kDone);
  queue.Add("old");
  clock.Advance(0.5);
  queue.Add("b-new");
  EXPECT_EQ(queue.Take(), "b-new");
  clock.Advance(0.6);
  queue.Add("a-new");
  EXPECT_EQ(queue.Take(), "old") << "it has waited longer than the head start";
  EXPECT_EQ(queue.Take(), "a-new");
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

TEST(WorkQueueTest, AKeyThatIsHurriedDoesNotWaitForItsBackOff) {
  FakeClock clock;
  WorkQueue queue(clock, {.pause = 1, .first_backoff = 60});
  queue.Add("a");
  EXPECT_EQ(queue.Take(), "a");
  queue.Done("a", Outcome::kFailed);
  queue.Hurry("a");
  queue.Add("b", 2);
  clock.Advance(3);  // the pause has passed, the back-off has not
  EXPECT_EQ(queue.Take(), "a");
  queue.Hurry("a");  // while somebody has it
  queue.Done("a", Outcome::kFailed);
  EXPECT_EQ(queue.Take(), "b");
  clock.Advance(1);
  EXPECT_EQ(queue.Take(), "a");
  queue.Done("a", Outcome::kFailed);
  queue.Add("c", 59);
  clock.Advance(60);
  EXPECT_EQ(queue.Take(), "c");
  EXPECT_EQ(queue.Take(), "a");
}

}  // namespace
}  // namespace muster::launch::kubernetes
