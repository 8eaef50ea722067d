#include "muster/train/model_lease.h"

#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/io/local_file_system.h"
#include "muster/io/memory_file_system.h"
#include "muster/process/identity.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

constexpr char kPath[] = "m/muster.lease";

class ModelLeaseTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(files_->MakeFolders("m").ok()); }
  auto Take(const WriterName& name = {}) { return ModelLease::Take(*files_, "m", name); }
  // As another process has left it.
  void Leave(const WriterName& name, const process::ProcessIdentity& process) {
    const std::string text = StrCat(
        R"({"job": ")", name.job, R"(", "task": ")", name.task, R"(", "incarnation": )",
        name.incarnation, R"(, "host": "node7", "pid": )", process.pid, R"(, "start_ticks": )",
        process.start_ticks, R"(, "machine": ")", process.machine, "\"}\n");
    ASSERT_TRUE(io::WriteFileAtomically(*files_, kPath, text).ok());
  }
  static process::ProcessIdentity Dead() {
    process::ProcessIdentity process = process::ThisProcess();
    --process.start_ticks;
    return process;
  }
  static process::ProcessIdentity Elsewhere() {
    process::ProcessIdentity process = process::ThisProcess();
    process.machine = "another";
    return process;
  }

  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
};

TEST_F(ModelLeaseTest, IsThereWhileItIsHeld) {
  {
    const auto lease = Take();
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_TRUE((*lease)->Check().ok());
    EXPECT_TRUE(files_->Stat(kPath).ok());
  }
  EXPECT_TRUE(absl::IsNotFound(files_->Stat(kPath).status()));
}

TEST_F(ModelLeaseTest, OfALivingProcessItIsRefusedAndTheProcessNamed) {
  const auto lease = Take({.job = "clicks", .task = "chief-0", .incarnation = 3});
  ASSERT_TRUE(lease.ok());
  const auto second = Take({.job = "other", .task = "chief-0", .incarnation = 9});
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_THAT(ToStd(second.status().message()),
              HasSubstr(StrCat("chief-0 of job 'clicks' (incarnation 3), process ", getpid())));
  EXPECT_THAT(ToStd(second.status().message()), HasSubstr("stop that one first"));
  EXPECT_TRUE((*lease)->Check().ok());
}

TEST_F(ModelLeaseTest, OfADeadProcessItIsFree) {
  Leave({.job = "other", .task = "chief-0", .incarnation = 90}, Dead());
  EXPECT_TRUE(Take().ok());
}

TEST_F(ModelLeaseTest, OfAnotherMachineItIsRefusedWithTheFileToRemove) {
  Leave({}, Elsewhere());
  const auto lease = Take();
  EXPECT_TRUE(absl::IsFailedPrecondition(lease.status()));
  EXPECT_THAT(ToStd(lease.status().message()), HasSubstr("on host node7"));
  EXPECT_THAT(ToStd(lease.status().message()), HasSubstr(StrCat("remove ", kPath)));
}

TEST_F(ModelLeaseTest, AnEarlierIncarnationOfTheTaskIsFenced) {
  const auto sleeper = Take({.job = "j", .task = "chief-0", .incarnation = 1});
  ASSERT_TRUE(sleeper.ok());
  EXPECT_FALSE(Take({.job = "j", .task = "chief-0", .incarnation = 1}).ok());
  EXPECT_FALSE(Take({.job = "j", .task = "worker-0", .incarnation = 2}).ok());
  const auto second = Take({.job = "j", .task = "chief-0", .incarnation = 2});
  ASSERT_TRUE(second.ok()) << second.status();
  const absl::Status fenced = (*sleeper)->Check();
  EXPECT_TRUE(absl::IsAborted(fenced));
  EXPECT_THAT(ToStd(fenced.message()), HasSubstr("now chief-0 of job 'j' (incarnation 2)"));
  EXPECT_TRUE((*second)->Check().ok());
}

TEST_F(ModelLeaseTest, WhoWasFencedDoesNotTakeItAwayAtItsEnd) {
  auto sleeper = *Take({.job = "j", .task = "chief-0", .incarnation = 1});
  const auto second = Take({.job = "j", .task = "chief-0", .incarnation = 2});
  sleeper.reset();
  EXPECT_TRUE((*second)->Check().ok());
}

TEST_F(ModelLeaseTest, AnIncarnationElsewhereIsFencedToo) {
  Leave({.job = "j", .task = "chief-0", .incarnation = 4}, Elsewhere());
  EXPECT_TRUE(Take({.job = "j", .task = "chief-0", .incarnation = 5}).ok());
}

TEST_F(ModelLeaseTest, WhatTheOneBeforeHadNotFinishedIsRemoved) {
  Leave({}, Dead());
  const std::string unfinished = io::TemporaryPath("m/model.ckpt-5.index");
  ASSERT_TRUE(io::WriteFileAtomically(*files_, unfinished, "x").ok());
  ASSERT_TRUE(Take().ok());
  EXPECT_TRUE(absl::IsNotFound(files_->Stat(unfinished).status()));
}

TEST_F(ModelLeaseTest, ATornOneIsFreeAndARemovedOneIsLost) {
  ASSERT_TRUE(io::WriteFileAtomically(*files_, kPath, "{\"job").ok());
  const auto lease = Take();
  ASSERT_TRUE(lease.ok()) << lease.status();
  ASSERT_TRUE(files_->Remove(kPath).ok());
  const absl::Status lost = (*lease)->Check();
  EXPECT_TRUE(absl::IsAborted(lost));
  EXPECT_THAT(ToStd(lost.message()), HasSubstr(StrCat(kPath, " was removed")));
}

}  // namespace
}  // namespace muster::train
