#include "muster/process/child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "muster/process/test_program.h"

namespace muster::process {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Outcome {
  absl::Status status;
  ExitInfo exit;
  std::string output;
};

Outcome RunToEnd(ChildSpec spec) {
  TestPipe pipe;
  spec.stdout_fd = pipe.writing.get();
  auto child = Child::Start(spec);
  if (!child.ok()) return {.status = child.status(), .exit = {}, .output = ""};
  std::string output = pipe.ReadToEnd();
  const auto exit = (*child)->Wait(kTestSeconds);
  if (!exit.ok()) return {.status = exit.status(), .exit = {}, .output = output};
  return {.status = absl::OkStatus(), .exit = *exit, .output = output};
}

int OpenDescriptors() {
  const std::filesystem::directory_iterator folder("/proc/self/fd");
  return static_cast<int>(std::distance(begin(folder), end(folder)));
}

TEST(ChildTest, TellsExitCodeSignalAndUse) {
  EXPECT_EQ(RunToEnd(Shell("exit 7")).exit.code, 7);
  const Outcome killed = RunToEnd(Shell("kill -9 $$"));
  EXPECT_EQ(killed.exit.signal, SIGKILL);
  EXPECT_EQ(DescribeExit(killed.exit), "signal 9 (Killed)");
  EXPECT_EQ(DescribeExit({.code = 3}), "exit code 3");
  const Outcome busy = RunToEnd(Shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"));
  EXPECT_TRUE(busy.exit.ok());
  EXPECT_GT(busy.exit.user_seconds + busy.exit.system_seconds, 0);
  EXPECT_GT(busy.exit.max_rss_bytes, 100'000);
}

TEST(ChildTest, GetsArgumentsEnvironmentAndFolder) {
  const TestFolder folder;
  ChildSpec spec = {.argv = {"sh", "-c", "echo \"$1|$COLOUR|$HOME|$(pwd)\"", "sh", "a b\"c"},
                    .environment = {"PATH=/usr/bin:/bin", "COLOUR=red"},
                    .working_directory = folder.path()};
  const Outcome run = RunToEnd(spec);
  EXPECT_EQ(run.output, "a b\"c|red||" + std::filesystem::canonical(folder.path()).string() + "\n");
}

TEST(ChildTest, RunsAProgramRelativeToItsWorkingDirectory) {
  const TestFolder folder;
  folder.Write("here.sh", "#!/bin/sh\necho here\n", true);
  ChildSpec spec = Shell("");
  spec.argv = {"./here.sh"};
  spec.working_directory = folder.path();
  EXPECT_EQ(RunToEnd(spec).output, "here\n");
}

TEST(ChildTest, EnvironmentHelpers) {
  std::vector<std::string> environment = {"A=1", "AB=2", "A=3"};
  EXPECT_EQ(FindEnvironment("A", environment), "1");
  EXPECT_EQ(FindEnvironment("B", environment), std::nullopt);
  SetEnvironment("A", "x=y", &environment);
  EXPECT_THAT(environment, testing::ElementsAre("AB=2", "A=x=y"));
}

TEST(ChildTest, WhatCannotStartIsSaidByName) {
  const TestFolder folder;
  const int descriptors = OpenDescriptors();
  const auto start = [&](const std::string& program) {
    ChildSpec spec = Shell("");
    spec.argv = {program};
    return RunToEnd(spec).status;
  };
  absl::Status status = start("no-such-program-anywhere");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("no-such-program-anywhere"), HasSubstr("PATH (")));

  status = start(folder.File("missing"));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(folder.File("missing")));

  status = start(folder.Write("plain", "#!/bin/sh\n"));
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("plain"), HasSubstr("chmod +x")));

  status = start(folder.path());
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);

  status = start(folder.Write("script", "#! /no/interpreter -u\n", true));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("script"), HasSubstr("/no/interpreter,")));

  status = start(folder.Write("text", "hello\n", true));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("text"), HasSubstr("#!")));

  ChildSpec spec = Shell("true");
  spec.working_directory = folder.File("nowhere");
  status = RunToEnd(spec).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("working directory " + folder.File("nowhere")));
  spec.working_directory = folder.Write("file", "");
  EXPECT_EQ(RunToEnd(spec).status.code(), absl::StatusCode::kInvalidArgument);

  spec = Shell("true");
  spec.argv.push_back(std::string("a\0b", 3));
  EXPECT_EQ(RunToEnd(spec).status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RunToEnd({}).status.code(), absl::StatusCode::kInvalidArgument);

  EXPECT_EQ(OpenDescriptors(), descriptors) << "descriptors are left open";
}

TEST(ChildTest, ANameInPathThatIsNotExecutableIsSaid) {
  const TestFolder folder;
  folder.Write("tool", "#!/bin/sh\n");
  ChildSpec spec = {.argv = {"tool"}, .environment = {"PATH=/nowhere:" + folder.path()}};
  const absl::Status status = RunToEnd(spec).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(status.message(), HasSubstr(folder.File("tool")));
}

TEST(ChildTest, ACoreThatIsNotThereIsAnError) {
  ChildSpec spec = Shell("true");
  spec.cpus = {100'000};
  const absl::Status status = RunToEnd(spec).status;
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("cores 100000"));
}

TEST(ChildTest, RunsOnItsCores) {
  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  int first = 0;
  while (!CPU_ISSET(first, &mine)) ++first;
  ChildSpec spec = Shell("grep Cpus_allowed_list /proc/self/status");
  spec.cpus = {first};
  EXPECT_EQ(RunToEnd(spec).output, StrCat("Cpus_allowed_list:\t", first, "\n"));
}

TEST(ChildTest, InheritsWhatIsNamedAndNothingElse) {
  const TestFolder folder;
  // Not close-on-exec, as a library may leave one.
  const Descriptor leaked(open("/dev/null", O_RDONLY));  // NOLINT(android-cloexec-open)
  const Descriptor low(open(folder.Write("low", "low").c_str(), O_RDONLY | O_CLOEXEC));
  const Descriptor high(open(folder.Write("high", "high").c_str(), O_RDONLY | O_CLOEXEC));
  ChildSpec spec =
      Shell("cat <&3; cat <&4; ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0");
  // Crosswise where the numbers allow: a source must not be overwritten before it is used.
  spec.inherited = {{.from = low.get(), .to = 4}, {.from = high.get(), .to = 3}};
  // ls holds the folder as one more.
  EXPECT_EQ(RunToEnd(spec).output, "highlow0 1 2 3 4 5 /dev/null\n");
}

TEST(ChildTest, StartsWithDefaultSignals) {
  struct sigaction ignore = {}, old = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &old);
  const Outcome run = RunToEnd(Shell("grep -E 'SigBlk|SigIgn' /proc/self/status"));
  sigaction(SIGPIPE, &old, nullptr);
  EXPECT_EQ(run.output, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST(ChildTest, HasASessionOfItsOwn) {
  auto child = Child::Start(Shell("sleep 1000"));
  ASSERT_TRUE(child.ok()) << child.status();
  const auto stat = ReadStat((*child)->pid());
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->session, (*child)->pid());
  EXPECT_EQ(stat->group, (*child)->pid());
}

TEST(ChildTest, WaitsNoLongerThanItsDeadlineAndMayBeAskedAgain) {
  auto child = Child::Start(Shell("sleep 1000"));
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ((*child)->Wait(0).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ((*child)->Wait(0.01).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE((*child)->SignalGroup(SIGTERM).ok());
  for (int i = 0; i < 2; ++i) {
    const auto exit = (*child)->Wait(kTestSeconds);
    ASSERT_TRUE(exit.ok()) << exit.status();
    EXPECT_EQ(exit->signal, SIGTERM);
  }
  EXPECT_TRUE((*child)->Signal(SIGTERM).ok());
  EXPECT_TRUE((*child)->SignalGroup(SIGTERM).ok());
}

TEST(ChildTest, ADestroyedChildIsKilledAndReaped) {
  TestPipe pipe;
  ChildSpec spec = Shell("sleep 1000 & echo $!; wait");
  spec.stdout_fd = pipe.writing.get();
  auto child = Child::Start(spec);
  ASSERT_TRUE(child.ok()) << child.status();
  const pid_t grandchild = std::stoi(pipe.ReadLine());
  const pid_t pid = (*child)->pid();
  child->reset();
  EXPECT_FALSE(ReadStat(pid)) << "not reaped";
  EXPECT_TRUE(Eventually([&] { return IsGone(grandchild); })) << "its group was not killed";
}

TEST(ChildTest, RunsOnWhenItIsLetGo) {
  TestPipe in, out;
  ChildSpec spec = Shell("read line; echo got $line");
  spec.stdin_fd = in.reading.get();
  spec.stdout_fd = out.writing.get();
  auto child = Child::Start(spec);
  ASSERT_TRUE(child.ok()) << child.status();
  const pid_t pid = (*child)->pid();
  (*child)->LetGo();
  EXPECT_EQ((*child)->Wait(0).status().code(), absl::StatusCode::kFailedPrecondition);
  child->reset();
  ASSERT_EQ(write(in.writing.get(), "it\n", 3), 3);
  EXPECT_EQ(out.ReadLine(), "got it");
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
}

TEST(ChildTest, DiesWithTheThreadThatStartedIt) {
  std::unique_ptr<Child> child;
  std::thread starter([&] { child = Child::Start(Shell("exec sleep 1000")).value(); });
  starter.join();
  const auto exit = child->Wait(kTestSeconds);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->signal, SIGKILL);
}

TEST(ChildTest, DiesWithItsStarterKilledByKillMinusNine) {
  TestPipe pipe;
  // A starter of its own. Nothing else of this process runs now, so it may do more than exec.
  const pid_t starter = fork();
  if (starter == 0) {
    auto child = Child::Start(Shell("exec sleep 1000"));
    dprintf(pipe.writing.get(), "%d\n", child.ok() ? (*child)->pid() : -1);
    while (true) pause();
  }
  const pid_t child = std::stoi(pipe.ReadLine());
  ASSERT_GT(child, 0);
  ASSERT_FALSE(IsGone(child));
  ASSERT_EQ(kill(starter, SIGKILL), 0);
  ASSERT_EQ(waitpid(starter, nullptr, 0), starter);
  EXPECT_TRUE(Eventually([&] { return IsGone(child); }));
}

TEST(ChildTest, OutlivesTheThreadWithoutADeathSignal) {
  std::unique_ptr<Child> child;
  TestPipe in, out;
  ChildSpec spec = Shell("read line; echo got $line");
  spec.stdin_fd = in.reading.get();
  spec.stdout_fd = out.writing.get();
  spec.parent_death_signal = 0;
  std::thread starter([&] { child = Child::Start(spec).value(); });
  starter.join();
  ASSERT_EQ(write(in.writing.get(), "it\n", 3), 3);
  EXPECT_EQ(out.ReadLine(), "got it");
}

TEST(ChildTest, SomebodyElseWaitedForIt) {
  auto child = Child::Start(Shell("exit 3"));
  ASSERT_TRUE(child.ok()) << child.status();
  ASSERT_EQ(waitpid((*child)->pid(), nullptr, 0), (*child)->pid());
  const auto exit = (*child)->Wait(kTestSeconds);
  EXPECT_EQ(exit.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(ChildTest, NoMoreDescriptorsIsAnErrorNotACrash) {
  rlimit old = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
  const rlimit low = {.rlim_cur = static_cast<rlim_t>(OpenDescriptors()), .rlim_max = old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const absl::Status status = Child::Start(Shell("true")).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

TEST(ChildTest, ManyStartsFromManyThreadsLeakNothing) {
  const int descriptors = OpenDescriptors();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 25; ++i) {
        auto child = Child::Start(Shell(StrCat("exit ", t + i)));
        ASSERT_TRUE(child.ok()) << child.status();
        const auto exit = (*child)->Wait(kTestSeconds);
        ASSERT_TRUE(exit.ok()) << exit.status();
        EXPECT_EQ(exit->code, t + i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(OpenDescriptors(), descriptors);
}

}  // namespace
}  // namespace muster::process
