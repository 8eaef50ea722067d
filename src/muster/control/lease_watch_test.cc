#include "muster/control/lease_watch.h"

#include <poll.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace muster::control {
namespace {

constexpr double kLease = 10;
constexpr std::chrono::seconds kDeadline{60};

// A clock that several threads read.
class SharedClock : public Clock {
 public:
  void Advance(double seconds) { nanos_ += static_cast<int64_t>(seconds * 1e9); }
  double seconds() const { return static_cast<double>(nanos_) * 1e-9; }
  double WallSeconds() const override { return seconds(); }
  int64_t MonotonicNanos() const override { return nanos_; }

 private:
  std::atomic<int64_t> nanos_ = 1'000'000'000;
};

class LeaseWatchTest : public ::testing::Test {
 protected:
  void Start(bool forgives) {
    heard_at_ = clock_.seconds();
    watch_ = std::make_unique<LeaseWatch>(
        LeaseWatchOptions{
            .listen =
                [this] {
                  return LeaseWatchOptions::Silence{clock_.seconds() - heard_at_, kLease};
                },
            .end = [this] { ++ends_; },
            .forgives = forgives,
            .look_seconds = 0.005},
        &clock_);
  }
  // As much time as a process that runs can miss between two looks.
  void PassSeconds(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      clock_.Advance(1);
      (void)watch_->over();
    }
  }

  SharedClock clock_;
  std::atomic<double> heard_at_ = 0;
  std::atomic<int> ends_ = 0;
  std::unique_ptr<LeaseWatch> watch_;
};

TEST_F(LeaseWatchTest, ItsOwnThreadEndsTheTaskOnce) {
  Start(/*forgives=*/false);
  clock_.Advance(kLease - 1);
  EXPECT_FALSE(watch_->over());
  EXPECT_FALSE(watch_->ends());
  clock_.Advance(2);
  // The owner, held up elsewhere, asks nothing.
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (ends_ == 0 && std::chrono::steady_clock::now() < deadline) poll(nullptr, 0, 1);
  ASSERT_EQ(ends_, 1);
  watch_->WaitForEnd();
  EXPECT_TRUE(watch_->ends());
  heard_at_ = clock_.seconds();  // too late
  EXPECT_TRUE(watch_->over());
  watch_.reset();
  EXPECT_EQ(ends_, 1);
}

TEST_F(LeaseWatchTest, AnOwnerThatSeesItFirstWaitsForTheEnd) {
  Start(/*forgives=*/true);
  PassSeconds(11);
  EXPECT_TRUE(watch_->over());
  watch_->WaitForEnd();
  EXPECT_EQ(ends_, 1);
}

TEST_F(LeaseWatchTest, TimeInWhichTheProcessDidNotRunIsForgiven) {
  Start(/*forgives=*/true);
  clock_.Advance(100);
  EXPECT_FALSE(watch_->over());
  PassSeconds(9);
  EXPECT_FALSE(watch_->over());
  PassSeconds(2);
  EXPECT_TRUE(watch_->over());
}

TEST_F(LeaseWatchTest, TimeInWhichTheCoordinatorDidNotRunIsForgiven) {
  Start(/*forgives=*/true);
  PassSeconds(9);
  watch_->Forgive();
  PassSeconds(9);
  EXPECT_FALSE(watch_->over());
  PassSeconds(2);
  EXPECT_TRUE(watch_->over());
}

TEST_F(LeaseWatchTest, NothingIsForgivenWhereTheCoordinatorCountsAlone) {
  Start(/*forgives=*/false);
  clock_.Advance(100);
  EXPECT_TRUE(watch_->over());
}

TEST_F(LeaseWatchTest, AnOwnerThatObeysAnOrderEndsTheTaskItself) {
  Start(/*forgives=*/false);
  watch_->Release();
  clock_.Advance(100);
  EXPECT_TRUE(watch_->over());
  watch_->WaitForEnd();
  watch_.reset();
  EXPECT_EQ(ends_, 0);
}

}  // namespace
}  // namespace muster::control
