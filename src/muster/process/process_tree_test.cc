#include "muster/process/process_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>

#include "muster/process/test_program.h"

namespace muster::process {
namespace {

using testing::HasSubstr;

class ProcessTreeTest : public testing::Test {
 protected:
  void SetUp() override { tree_ = ProcessTree::Create().value(); }
  void TearDown() override {
    EXPECT_TRUE(tree_->Stop({.grace_seconds = 0}).ok());
    EXPECT_TRUE(tree_->Running().empty());
  }

  // Starts a script that writes its lines into pipe_.
  std::unique_ptr<Child> Start(const std::string& script) {
    ChildSpec spec = Shell(script);
    spec.stdout_fd = pipe_.writing.get();
    auto child = tree_->Start(spec);
    EXPECT_TRUE(child.ok()) << child.status();
    return *std::move(child);
  }
  pid_t ReadPid() { return std::stoi(pipe_.ReadLine()); }

  std::unique_ptr<ProcessTree> tree_;
  TestPipe pipe_;
};

TEST_F(ProcessTreeTest, OneAtATime) {
  EXPECT_EQ(ProcessTree::Create().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ProcessTreeTest, StopsByTermWhenThatIsEnough) {
  auto child = Start("trap 'exit 4' TERM; sleep 1000 & echo $!; wait");
  const pid_t sleeper = ReadPid();
  // Before its exec it is a shell that would take the signal to its trap, and lose it.
  ASSERT_TRUE(Eventually([&] { return CommandLine(sleeper) == "sleep 1000"; }));
  const auto report = tree_->Stop({.grace_seconds = kTestSeconds});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GE(report->told, 1);
  EXPECT_EQ(report->killed, 0);
  const auto exit = child->Wait(0);
  ASSERT_TRUE(exit.ok()) << "Stop returned while it ran";
  EXPECT_EQ(exit->code, 4);
}

TEST_F(ProcessTreeTest, KillsWhatIgnoresTerm) {
  auto child = Start("trap '' TERM; echo ready; while :; do sleep 1000; done");
  pipe_.ReadLine();
  // Ignored signals are inherited: sleep ignores it too.
  ASSERT_TRUE(Eventually([&] { return tree_->Running().size() == 2; }));
  const auto report = tree_->Stop({.grace_seconds = 0.05});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->told, 2);
  EXPECT_EQ(report->killed, 2);
  EXPECT_EQ(child->Wait(0)->signal, SIGKILL);
}

TEST_F(ProcessTreeTest, EndsAStoppedProcessGently) {
  auto child = Start("trap 'exit 5' TERM; echo ready; kill -STOP $$; sleep 1000 & wait");
  pipe_.ReadLine();
  ASSERT_TRUE(Eventually([&] { return ReadStat(child->pid())->state == 'T'; }));
  ASSERT_TRUE(tree_->Stop({.grace_seconds = kTestSeconds}).ok());
  EXPECT_EQ(child->Wait(0)->code, 5);
}

TEST_F(ProcessTreeTest, FindsWhatADoubleForkAndASessionHid) {
  auto child = Start("(setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' &) ; exit 0");
  const pid_t hidden = ReadPid();
  ASSERT_TRUE(child->Wait(kTestSeconds).ok());
  ASSERT_TRUE(Eventually([&] { return ReadStat(hidden)->parent == getpid(); })) << "not adopted";
  EXPECT_EQ(tree_->Running().size(), 1U);
  const auto report = tree_->Stop({.grace_seconds = 0.05});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->killed, 1);
  EXPECT_FALSE(ReadStat(hidden)) << "a zombie is left";
}

TEST_F(ProcessTreeTest, ReapsOrphansButNoChildren) {
  auto child = Start("(sh -c 'echo $$' &); exit 3");
  const pid_t orphan = ReadPid();
  ASSERT_TRUE(Eventually([&] { return ReadStat(child->pid())->ended(); }));
  ASSERT_TRUE(Eventually([&] {
    tree_->ReapOrphans();
    return !ReadStat(orphan);
  }));
  const auto exit = child->Wait(0);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->code, 3);
  EXPECT_EQ(tree_->ReapOrphans(), 0);
}

TEST_F(ProcessTreeTest, AForkingCrowdEnds) {
  // Each answers SIGTERM with another fork: only killing until none is found gets rid of them.
  auto child = Start(
      "f() { trap 'f & f &' TERM; echo up; while :; do sleep 0.01; done; }; f & f & f & wait");
  for (int i = 0; i < 3; ++i) pipe_.ReadLine();
  const auto report = tree_->Stop({.grace_seconds = 0.1, .kill_wait_seconds = kTestSeconds});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(tree_->Running().empty());
}

TEST_F(ProcessTreeTest, ZombiesBelowALivingParentDoNotHoldStopUp) {
  // exec keeps the child that the shell never waited for: a zombie of sleep's. It ends only then,
  // or the shell might still wait for it.
  auto child = Start(
      "sh -c 'while ! grep -q sleep /proc/$PPID/comm; do :; done' & echo $!; exec sleep 1000");
  const pid_t zombie = ReadPid();
  ASSERT_TRUE(Eventually([&] {
    const auto stat = ReadStat(zombie);
    return stat && stat->state == 'Z';
  }));
  EXPECT_EQ(tree_->Running().size(), 1U);
  ASSERT_TRUE(tree_->Stop({.grace_seconds = kTestSeconds}).ok());
  EXPECT_FALSE(ReadStat(zombie));
}

TEST_F(ProcessTreeTest, CountsUse) {
  auto child =
      Start("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; sleep 1000 & wait");
  pipe_.ReadLine();
  ASSERT_TRUE(Eventually([&] { return tree_->Usage(false).processes == 2; }));
  const TreeUsage usage = tree_->Usage(true);
  EXPECT_EQ(usage.threads, 2);
  EXPECT_GT(usage.cpu_seconds, 0);
  EXPECT_GT(usage.pss_bytes, 50'000);
  EXPECT_EQ(tree_->Usage(false).pss_bytes, 0);
  ASSERT_TRUE(tree_->Stop({.grace_seconds = 0}).ok());
  ASSERT_TRUE(child->Wait(0).ok());
  EXPECT_GE(tree_->Usage(false).cpu_seconds, usage.cpu_seconds) << "use was forgotten";
}

TEST_F(ProcessTreeTest, ChildrenMayOutliveTheTree) {
  auto child = Start("exit 6");
  tree_.reset();
  EXPECT_EQ(child->Wait(kTestSeconds)->code, 6);
  tree_ = ProcessTree::Create().value();
}

TEST_F(ProcessTreeTest, MarkedProcessesAreFoundWhereverTheyAre) {
  const std::string mark = StrCat("MUSTER_TEST_TASK=", getpid(), "/worker-0");
  ChildSpec spec = Shell("env -i sleep 1000 & echo $!; (setsid sleep 1000 & echo $!); wait");
  spec.stdout_fd = pipe_.writing.get();
  spec.environment.push_back(mark);
  auto child = tree_->Start(spec);
  ASSERT_TRUE(child.ok()) << child.status();
  const pid_t unmarked = ReadPid(), elsewhere = ReadPid();
  ASSERT_TRUE(Eventually([&] {
    return CommandLine(unmarked) == "sleep 1000" && CommandLine(elsewhere) == "sleep 1000";
  }));
  EXPECT_TRUE(EndMarked(mark + "0", {}).ok()) << "a longer value is another";
  EXPECT_TRUE(EndMarked(mark.substr(1), {}).ok()) << "a shorter name is another";
  EXPECT_FALSE(IsGone(elsewhere));
  const auto report = EndMarked(mark, {.grace_seconds = kTestSeconds});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->told, 3);
  EXPECT_TRUE(IsGone((*child)->pid()) && IsGone(unmarked) && IsGone(elsewhere));
}

TEST_F(ProcessTreeTest, WhatAKilledStarterLeftIsFoundByItsMark) {
  const std::string mark = StrCat("MUSTER_TEST_TASK=", getpid(), "/killed");
  const pid_t starter = fork();
  if (starter == 0) {
    ChildSpec spec = Shell("trap '' HUP; sleep 1000 & echo $!; wait");
    spec.stdout_fd = pipe_.writing.get();
    spec.environment.push_back(mark);
    const auto child = Child::Start(spec);
    while (true) pause();
  }
  const pid_t left = ReadPid();
  ASSERT_EQ(kill(starter, SIGKILL), 0);
  ASSERT_EQ(waitpid(starter, nullptr, 0), starter);
  EXPECT_FALSE(IsGone(left)) << "the death signal reaches the program alone";
  const auto report = EndMarked(mark, {.grace_seconds = kTestSeconds});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(Eventually([&] { return IsGone(left); }));
}

}  // namespace
}  // namespace muster::process
