#include "muster/process/keep_alive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "muster/process/test_program.h"

namespace muster::process {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class KeepAliveTest : public testing::Test {
 protected:
  // Each start runs the next of the scripts.
  absl::StatusOr<std::unique_ptr<Child>> Start(const std::string& script) {
    ChildSpec spec = Shell(script);
    spec.stdout_fd = pipe_.writing.get();
    return Child::Start(spec);
  }
  absl::Status Run(const std::vector<std::string>& scripts) {
    options_.pause_seconds = 0.01;
    options_.say = [this](const std::string& text) { said_.push_back(text); };
    size_t next = 1;
    const Starter start = [&] {
      clock_.Advance(seconds_per_run_);
      return Start(scripts[std::min(next++, scripts.size() - 1)]);
    };
    return KeepAlive(Start(scripts[0]).value(), start, clock_, options_);
  }

  TestPipe pipe_;
  FakeClock clock_;
  double seconds_per_run_ = 0;
  KeepAliveOptions options_;
  std::vector<std::string> said_;
};

TEST_F(KeepAliveTest, AGoodEndIsTheEnd) {
  EXPECT_TRUE(Run({"echo once"}).ok());
  EXPECT_EQ(pipe_.ReadToEnd(), "once\n");
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(KeepAliveTest, WhatDiesIsStartedAgain) {
  EXPECT_TRUE(Run({"kill -9 $$", "exit 3", "no-such-program", "echo last"}).ok());
  EXPECT_EQ(pipe_.ReadToEnd(), "last\n");
  EXPECT_THAT(said_, ElementsAre("signal 9 (Killed): started again in 0 s",
                                 "exit code 3: started again in 0.01 s",
                                 "exit code 127: started again in 0.02 s"));
}

TEST_F(KeepAliveTest, AStartThatFailsIsADeath) {
  int starts = 0;
  const Starter start = [&]() -> absl::StatusOr<std::unique_ptr<Child>> {
    if (++starts == 1) return absl::UnavailableError("not now");
    return Start("true");
  };
  options_.say = [this](const std::string& text) { said_.push_back(text); };
  options_.pause_seconds = 0.01;
  EXPECT_TRUE(KeepAlive(Start("exit 1").value(), start, clock_, options_).ok());
  EXPECT_EQ(starts, 2);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("exit code 1"), HasSubstr("not now")));
}

TEST_F(KeepAliveTest, TooManyDeathsAreGivenUp) {
  options_.max_restarts = 2;
  const absl::Status status = Run({"echo died; exit 7"});
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("exit code 7"), HasSubstr("again 2 times in 600 s")));
  EXPECT_EQ(pipe_.ReadToEnd(), "died\ndied\ndied\n");
}

TEST_F(KeepAliveTest, DeathsThatAreLongAgoDoNotCount) {
  options_.max_restarts = 2;
  seconds_per_run_ = 301;
  EXPECT_TRUE(Run({"exit 1", "exit 1", "exit 1", "exit 1", "true"}).ok());
  EXPECT_THAT(said_, SizeIs(4));
}

TEST_F(KeepAliveTest, AProcessThatWasToldToEndIsNotStartedAgain) {
  const absl::Status status = Run({"kill -TERM $$", "echo again"});
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("signal 15"));
  EXPECT_EQ(pipe_.ReadToEnd(), "");
}

TEST_F(KeepAliveTest, AStopIsPassedOnAndWaitedFor) {
  const TestPipe stop;
  options_.stop_fd = stop.reading.get();
  absl::Status status = absl::UnknownError("not yet");
  std::thread keeper([&] {
    status = Run({"trap 'echo stops; exit 3' TERM; echo up; while :; do sleep 0.01; done"});
  });
  EXPECT_EQ(pipe_.ReadLine(), "up");
  ASSERT_EQ(write(stop.writing.get(), "x", 1), 1);
  keeper.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(pipe_.ReadLine(), "stops");
  EXPECT_THAT(said_, IsEmpty());
}

}  // namespace
}  // namespace muster::process
