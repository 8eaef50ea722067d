#include "muster/process/proc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/process/test_program.h"

namespace muster::process {
namespace {

constexpr char kStat[] =
    "4242 (a) b (c) S 7 8 9 0 -1 4194560 100 200 0 0 250 50 30 20 20 0 5 0 123456 1 2 3 4 5 6 7\n";

TEST(ProcTest, ParsesAStatLineWithAnAwkwardName) {
  const auto stat = ParseStat(kStat);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 4242);
  EXPECT_EQ(stat->name, "a) b (c");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->group, 8);
  EXPECT_EQ(stat->session, 9);
  EXPECT_EQ(stat->threads, 5);
  EXPECT_EQ(stat->start_ticks, 123456U);
  const auto per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(stat->cpu_seconds, 300 / per_second);
  EXPECT_DOUBLE_EQ(stat->children_cpu_seconds, 50 / per_second);
}

TEST(ProcTest, AStatLineCutAnywhereIsNone) {
  const std::string text = kStat;
  for (size_t size = 0; size < text.find(" 123456"); ++size) {
    EXPECT_FALSE(ParseStat(text.substr(0, size))) << size;
  }
  EXPECT_FALSE(ParseStat(")1 ( S"));
}

TEST(ProcTest, ReadsItself) {
  const auto stat = ReadStat(getpid());
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->parent, getppid());
  EXPECT_TRUE(OpenProcess(*stat).valid());
  EXPECT_FALSE(ReadStat(-1));
  EXPECT_GT(PssBytes(getpid()).value_or(0), 100'000);
  EXPECT_THAT(CommandLine(getpid(), 10), testing::SizeIs(10));
}

TEST(ProcTest, ADescriptorIsOfThatProcessAlone) {
  ProcessStat stat = *ReadStat(getpid());
  ++stat.start_ticks;
  EXPECT_FALSE(OpenProcess(stat).valid()) << "a number given anew is another process";
}

TEST(ProcTest, BothWaysFindTheSameDescendants) {
  TestPipe pipe;
  ChildSpec spec = Shell("sh -c 'sleep 1000 & echo $!; wait' & sleep 1000 & wait");
  spec.stdout_fd = pipe.writing.get();
  auto child = Child::Start(spec);
  ASSERT_TRUE(child.ok()) << child.status();
  const pid_t last = std::stoi(pipe.ReadLine());
  const auto pids = [](const std::vector<ProcessStat>& processes) {
    std::vector<pid_t> result;
    for (const ProcessStat& process : processes) result.push_back(process.pid);
    return result;
  };
  const pid_t root = (*child)->pid();
  ASSERT_TRUE(Eventually([&] { return Descendants({root}).size() == 3; }));
  const std::vector<pid_t> found = pids(Descendants({root}));
  EXPECT_EQ(found.back(), last);
  EXPECT_THAT(pids(QuickDescendants(root)), testing::UnorderedElementsAreArray(found));
  EXPECT_THAT(pids(Descendants({root, found.front()})), testing::UnorderedElementsAreArray(found));
}

TEST(ProcTest, AMarkedProcessIsFoundInTheMidstOfAnExec) {
  // Between its old program and its new one a process shows an empty environment.
  const std::string mark = StrCat("MUSTER_TEST_TASK=", getpid(), "/exec");
  TestFolder folder;
  const std::string script = folder.Write("again", "#!/bin/sh\nexec \"$0\"\n", true);
  ChildSpec spec = {.argv = {script}, .environment = CurrentEnvironment()};
  spec.environment.push_back(mark);
  const auto child = Child::Start(spec);
  ASSERT_TRUE(child.ok()) << child.status();
  for (int i = 0; i < 300; ++i) ASSERT_EQ(FindMarked(mark).size(), 1U) << "look " << i;
}

}  // namespace
}  // namespace muster::process
