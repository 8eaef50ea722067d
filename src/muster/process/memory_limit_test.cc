#include "muster/process/memory_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "muster/process/test_program.h"

namespace muster::process {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kMebibyte = int64_t{1} << 20;

// A folder that stands for /sys/fs/cgroup.
class FakeCgroups {
 public:
  explicit FakeCgroups(const std::string& membership) {
    places = {.root = folder_.path(), .membership = folder_.Write("membership", membership)};
  }
  // A group with the files that decide.
  void Add(const std::string& group, const std::string& controllers, const std::string& subtree) {
    std::filesystem::create_directories(folder_.File(group));
    folder_.Write(group + "/cgroup.procs", "");
    folder_.Write(group + "/cgroup.controllers", controllers + "\n");
    folder_.Write(group + "/cgroup.subtree_control", subtree + "\n");
  }
  std::string File(const std::string& name) const { return folder_.File(name); }

  CgroupPlaces places;

 private:
  TestFolder folder_;
};

bool WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  return file.good();
}

std::string Name(const std::string& name) { return StrCat("muster-", name, "-", getpid()); }

TEST(FreeMemoryTest, IsThatOfTheMachineAndOfAllGroupsAbove) {
  TestFolder machine;
  FakeCgroups cgroups("0::/user/app\n");
  cgroups.places.machine = machine.Write("meminfo", "MemTotal: 9 kB\nMemAvailable:    4000 kB\n");
  EXPECT_EQ(GetFreeMemory(cgroups.places), 4000u << 10);  // no hierarchy
  cgroups.Add(".", "cpu memory", "cpu memory");
  cgroups.Add("user", "memory", "memory");
  cgroups.Add("user/app", "memory", "memory");
  EXPECT_EQ(GetFreeMemory(cgroups.places), 4000u << 10);
  const auto limit = [&](const std::string& group, const std::string& bytes, int used) {
    EXPECT_TRUE(WriteText(cgroups.File(group + "/memory.max"), bytes));
    EXPECT_TRUE(
        WriteText(cgroups.File(group + "/memory.stat"), StrCat("anon ", used, "\nfile 7\n")));
  };
  limit("user/app", "max", 100);
  EXPECT_EQ(GetFreeMemory(cgroups.places), 4000u << 10);
  limit("user/app", "3000", 100);
  EXPECT_EQ(GetFreeMemory(cgroups.places), 2900u);
  limit("user", "1000", 800);
  EXPECT_EQ(GetFreeMemory(cgroups.places), 200u);
  limit("user", "1000", 1800);
  EXPECT_EQ(GetFreeMemory(cgroups.places), 0u);
  EXPECT_GT(GetFreeMemory(), 0u);
}

TEST(MemoryLimitTest, MakesAGroupOfVersionTwoBelowItsOwn) {
  FakeCgroups cgroups("1:name=systemd:/other\n0::/user/app\n");
  cgroups.Add(".", "cpu memory", "cpu memory");
  cgroups.Add("user", "memory", "memory");
  cgroups.Add("user/app", "memory", "memory pids");
  const auto limit = MemoryLimit::Create("worker-0", 1000, cgroups.places);
  ASSERT_TRUE(limit.ok()) << limit.status();
  const std::string folder = cgroups.File("user/app/" + Name("worker-0"));
  EXPECT_EQ((*limit)->folder(), folder);
  EXPECT_EQ(ReadAll(folder + "/memory.max"), "1000");
  EXPECT_EQ(ReadAll(folder + "/memory.swap.max"), "0");
  EXPECT_EQ(ReadAll(folder + "/memory.oom.group"), "1");
  EXPECT_GE((*limit)->procs_fd(), 0);
}

TEST(MemoryLimitTest, GoesUpWhereProcessesStandInTheWay) {
  FakeCgroups cgroups("0::/user/app/scope\n");
  cgroups.Add(".", "cpu memory", "cpu memory");
  cgroups.Add("user", "memory", "memory");
  cgroups.Add("user/app", "memory", "memory");
  // No memory below it, and its subtree_control, a folder here, takes nothing: as EBUSY does.
  cgroups.Add("user/app/scope", "memory", "");
  std::filesystem::remove(cgroups.File("user/app/scope/cgroup.subtree_control"));
  std::filesystem::create_directory(cgroups.File("user/app/scope/cgroup.subtree_control"));
  const auto limit = MemoryLimit::Create("ps-1", 1000, cgroups.places);
  ASSERT_TRUE(limit.ok()) << limit.status();
  EXPECT_EQ((*limit)->folder(), cgroups.File("user/app/" + Name("ps-1")));
}

TEST(MemoryLimitTest, RemovesWhatAnotherProcessLeft) {
  FakeCgroups cgroups("0::/user/app\n");
  cgroups.Add(".", "memory", "memory");
  cgroups.Add("user/app", "memory", "memory");
  const std::string left = cgroups.File("user/muster-worker-0-1-71");
  std::filesystem::create_directories(left);
  for (const auto& [name, creator] : std::vector<std::pair<std::string, int>>{
           {"worker-0-2", 71}, {"worker-0-1", 72}, {"..", 71}}) {
    MemoryLimit::RemoveLeft(name, creator, cgroups.places);
    EXPECT_TRUE(std::filesystem::exists(left)) << name << " of " << creator;
  }
  MemoryLimit::RemoveLeft("worker-0-1", 71, cgroups.places);
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST(MemoryLimitTest, CountsOutOfMemoryKills) {
  FakeCgroups cgroups("0::/\n");
  cgroups.Add(".", "memory", "memory");
  const auto limit = MemoryLimit::Create("w", 1000, cgroups.places);
  ASSERT_TRUE(limit.ok()) << limit.status();
  EXPECT_EQ((*limit)->OutOfMemoryKills().status().code(), absl::StatusCode::kNotFound);
  std::ofstream((*limit)->folder() + "/memory.events") << "low 0\noom 3\noom_kill 2\n";
  EXPECT_EQ(*(*limit)->OutOfMemoryKills(), 2);
  std::ofstream((*limit)->folder() + "/memory.events") << "low 0\noom 3\n";
  EXPECT_EQ((*limit)->OutOfMemoryKills().status().code(), absl::StatusCode::kUnimplemented);
}

TEST(MemoryLimitTest, SaysWhyItIsNotEnforced) {
  FakeCgroups none("0::/\n");
  absl::Status status = MemoryLimit::Create("w", 1000, none.places).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("not enforced"), HasSubstr(none.places.root)));

  FakeCgroups forbidden("0::/a\n");
  forbidden.Add(".", "memory", "cpu");
  std::filesystem::remove(forbidden.File("cgroup.procs"));
  status = MemoryLimit::Create("w", 1000, forbidden.places).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("delegated"));
}

TEST(MemoryLimitTest, RefusesNamesAndSizesThatCannotBe) {
  for (const char* name : {"", "../x", "a/b", "a b"}) {
    EXPECT_EQ(MemoryLimit::Create(name, 1000).status().code(), absl::StatusCode::kInvalidArgument)
        << name;
  }
  EXPECT_EQ(MemoryLimit::Create("w", 0).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(MemoryLimitTest, TheKernelEndsWhoTakesTooMuchAndTellsSo) {
  auto limit = MemoryLimit::Create("test", 48 * kMebibyte);
  if (absl::IsFailedPrecondition(limit.status())) GTEST_SKIP() << limit.status();
  ASSERT_TRUE(limit.ok()) << limit.status();
  ChildSpec spec = {.argv = {"python3", "-S", "-c", "b = bytearray(b'x') * (400 << 20)"},
                    .environment = CurrentEnvironment(),
                    .cgroup_procs_fd = (*limit)->procs_fd()};
  auto child = Child::Start(spec);
  ASSERT_TRUE(child.ok()) << child.status();
  const auto exit = (*child)->Wait(kTestSeconds);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->signal, SIGKILL) << exit->code;
  EXPECT_EQ((*limit)->OutOfMemoryKills().value(), 1);
  const std::string folder = (*limit)->folder();
  EXPECT_TRUE((*limit)->Close().ok());
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(MemoryLimitTest, AnotherDeathIsNotOutOfMemory) {
  auto limit = MemoryLimit::Create("test", 64 * kMebibyte);
  if (absl::IsFailedPrecondition(limit.status())) GTEST_SKIP() << limit.status();
  ASSERT_TRUE(limit.ok()) << limit.status();
  ChildSpec spec = Shell("exec sleep 1000");
  spec.cgroup_procs_fd = (*limit)->procs_fd();
  auto child = Child::Start(spec);
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ((*limit)->Close().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE((*child)->Signal(SIGKILL).ok());
  ASSERT_EQ((*child)->Wait(kTestSeconds)->signal, SIGKILL);
  EXPECT_EQ((*limit)->OutOfMemoryKills().value(), 0);
}

}  // namespace
}  // namespace muster::process
