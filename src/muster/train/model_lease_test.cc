#include "muster/train/model_lease.h"

#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/io/fenced_file_system.h"
#include "muster/io/local_file_system.h"
#include "muster/io/memory_file_system.h"
#include "muster/process/identity.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

constexpr char kPath[] = "m/muster.lease";
constexpr char kBeatPath[] = "m/muster.lease.beat";

class ModelLeaseTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(files_->MakeFolders("m").ok()); }
  auto Acquire(const WriterName& name = {}, LeaseOptions options = {}) {
    options.note = [this](const std::string& text) { notes_ += text + "\n"; };
    options.sleep = [this](double seconds) {
      clock_.Advance(seconds);
      if (each_look_) each_look_();
    };
    return ModelLease::Acquire(*files_, "m", name, clock_, options);
  }
  // Acquires the lease as a process of another machine, which does not renew it.
  auto AcquireElsewhere(const WriterName& name = {}) {
    LeaseOptions options;
    options.process = Elsewhere();
    constexpr double kYear = 365.0 * 24 * 3600;
    options.beat_seconds = kYear;
    return Acquire(name, options);
  }
  void Beat(const std::string& text) {
    ASSERT_TRUE(io::WriteFileAtomically(*files_, kBeatPath, text).ok());
  }
  std::string Read(const std::string& path) { return io::ReadFile(*files_, path).value_or(""); }
  double waited() const { return static_cast<double>(clock_.MonotonicNanos()) * 1e-9; }
  // Writes the lease file that another process left.
  void Leave(const WriterName& name, const process::ProcessIdentity& process,
             const std::string& more = "") {
    const std::string text = StrCat(
        R"({"job": ")", name.job, R"(", "task": ")", name.task, R"(", "incarnation": )",
        name.incarnation, R"(, "host": "node7", "pid": )", process.pid, R"(, "start_ticks": )",
        process.start_ticks, R"(, "machine": ")", process.machine, "\"", more, "}\n");
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
  FakeClock clock_;
  std::string notes_;
  std::function<void()> each_look_;  // called while a process waits for a lease
};

TEST_F(ModelLeaseTest, TheFileExistsWhileTheLeaseIsHeld) {
  {
    const auto lease = Acquire();
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_TRUE((*lease)->Check().ok());
    EXPECT_TRUE(files_->Stat(kPath).ok());
  }
  EXPECT_TRUE(absl::IsNotFound(files_->Stat(kPath).status()));
  EXPECT_TRUE(absl::IsNotFound(files_->Stat(kBeatPath).status()));
}

TEST_F(ModelLeaseTest, TheLeaseOfALiveProcessIsRefusedAndTheProcessNamed) {
  const auto lease = Acquire({.job = "clicks", .task = "chief-0", .incarnation = 3});
  ASSERT_TRUE(lease.ok());
  const auto second = Acquire({.job = "other", .task = "chief-0", .incarnation = 9});
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_THAT(ToStd(second.status().message()),
              HasSubstr(StrCat("chief-0 of job 'clicks' (incarnation 3), process ", getpid())));
  EXPECT_THAT(ToStd(second.status().message()), HasSubstr("stop that one first"));
  EXPECT_TRUE((*lease)->Check().ok());
}

TEST_F(ModelLeaseTest, TheLeaseOfADeadProcessIsFree) {
  Leave({.job = "other", .task = "chief-0", .incarnation = 90}, Dead());
  EXPECT_TRUE(Acquire().ok());
}

TEST_F(ModelLeaseTest, ALeaseOfAnotherMachineIsRefusedAndItsFileNamed) {
  // The lease has no heartbeat, as an older Muster wrote it.
  Leave({}, Elsewhere());
  const auto lease = Acquire();
  EXPECT_TRUE(absl::IsFailedPrecondition(lease.status()));
  EXPECT_EQ(waited(), 0);
  EXPECT_THAT(ToStd(lease.status().message()), HasSubstr("on host node7"));
  EXPECT_THAT(ToStd(lease.status().message()), HasSubstr(StrCat("remove ", kPath)));
}

TEST_F(ModelLeaseTest, ALeaseOfAnotherMachineExpiresIfItIsUnchangedForAMinute) {
  const auto dead = AcquireElsewhere({.job = "first", .task = "chief-0", .incarnation = 3});
  ASSERT_TRUE(dead.ok()) << dead.status();
  const auto lease = Acquire({.job = "second", .task = "chief-0", .incarnation = 1});
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_GE(waited(), 60);
  EXPECT_LT(waited(), 62);
  EXPECT_THAT(notes_, HasSubstr("chief-0 of job 'first' (incarnation 3)"));
  EXPECT_TRUE((*lease)->Check().ok());
  EXPECT_TRUE(absl::IsAborted((*dead)->Check()));
}

TEST_F(ModelLeaseTest, AHeartbeatRenewsTheLeaseOfAnotherMachine) {
  const auto holder = AcquireElsewhere({.job = "first", .task = "chief-0", .incarnation = 3});
  each_look_ = [this] {
    if (waited() > 57) Beat(StrCat("beat at ", waited()));
  };
  const auto refused = Acquire();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(ToStd(refused.status().message()), HasSubstr("chief-0 of job 'first'"));
  EXPECT_THAT(ToStd(refused.status().message()), HasSubstr("which renews its lease"));
  EXPECT_LT(waited(), 59);
  EXPECT_TRUE((*holder)->Check().ok());
}

// No wait for a heartbeat is needed if the liveness of the process can be checked.
TEST_F(ModelLeaseTest, ALeaseOfThisMachineDoesNotExpireWhileItsProcessLives) {
  const auto lease = Acquire();
  each_look_ = [] { FAIL() << "the process waited"; };
  EXPECT_TRUE(absl::IsFailedPrecondition(Acquire().status()));
  EXPECT_TRUE((*lease)->Check().ok());
}

TEST_F(ModelLeaseTest, TheFirstOfTwoWaitingProcessesAcquiresIt) {
  const auto dead = AcquireElsewhere({.job = "first", .task = "chief-0", .incarnation = 1});
  std::unique_ptr<ModelLease> third;
  each_look_ = [&] {
    if (waited() < 59 || third != nullptr) return;
    ASSERT_TRUE(files_->Remove(kPath).ok());
    third = *AcquireElsewhere({.job = "third", .task = "chief-0", .incarnation = 1});
  };
  const auto refused = Acquire({.job = "second", .task = "chief-0", .incarnation = 1});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(ToStd(refused.status().message()), HasSubstr("of job 'third'"));
  EXPECT_TRUE(third->Check().ok());
}

TEST_F(ModelLeaseTest, ALeaseThatIsReleasedDuringTheWaitIsAcquiredAtOnce) {
  auto holder = AcquireElsewhere();
  each_look_ = [&] { holder->reset(); };
  EXPECT_TRUE(Acquire().ok());
  EXPECT_LT(waited(), 2);
}

TEST_F(ModelLeaseTest, AStopRequestEndsTheWait) {
  const auto holder = AcquireElsewhere();
  std::atomic<bool> stop = false;
  each_look_ = [&] { stop = true; };
  LeaseOptions options;
  options.stop = &stop;
  EXPECT_EQ(Acquire({}, options).status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE((*holder)->Check().ok());
}

// A heartbeat that exists but cannot be read must not count as missing.
TEST_F(ModelLeaseTest, AnUnreadableHeartbeatIsAnError) {
  const auto holder = AcquireElsewhere();
  ASSERT_TRUE(files_->Remove(kBeatPath).ok());
  ASSERT_TRUE(files_->MakeFolders(kBeatPath).ok());
  EXPECT_FALSE(Acquire().ok());
  EXPECT_TRUE((*holder)->Check().ok());
}

TEST_F(ModelLeaseTest, ItsThreadRewritesTheHeartbeatButNotTheLease) {
  LeaseOptions often;
  often.beat_seconds = 0.001;
  const auto lease = Acquire({}, often);
  ASSERT_TRUE(lease.ok()) << lease.status();
  const std::string own = Read(kPath);
  std::string before = Read(kBeatPath);
  for (int changes = 0; changes < 5;) {
    const std::string now = Read(kBeatPath);
    changes += now != before ? 1 : 0;
    before = now;
  }
  EXPECT_EQ(Read(kPath), own);
}

TEST_F(ModelLeaseTest, AHolderWhoseLeaseExpiredRenamesNothingMore) {
  const auto sleeper = AcquireElsewhere();
  io::FencedFileSystem files(*files_, [&] { return (*sleeper)->Check(); });
  ASSERT_TRUE(io::WriteFileAtomically(files, "m/.checkpoint.tmp-1-1", "old").ok());
  const auto lease = Acquire();
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_TRUE(absl::IsNotFound(files_->Stat("m/.checkpoint.tmp-1-1").status()));
  EXPECT_TRUE(absl::IsAborted(files.Rename("m/.checkpoint.tmp-1-1", "m/checkpoint")));
}

TEST_F(ModelLeaseTest, TheFileIsReadAgainOnlyIfItsIdentityChanged) {
  io::FaultFileSystem watched(*files_);
  const auto lease =
      ModelLease::Acquire(watched, "m", {.job = "j", .task = "chief-0", .incarnation = 1}, clock_,
                          {.beat_seconds = 1e6});
  ASSERT_TRUE(lease.ok()) << lease.status();
  ASSERT_TRUE((*lease)->CheckIdentity().ok());
  watched.FailNth(io::FileOperation::kRead, 1, absl::UnavailableError("read"));
  EXPECT_TRUE((*lease)->CheckIdentity().ok()) << "the file was read";
  const auto second = Acquire({.job = "j", .task = "chief-0", .incarnation = 2});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(absl::IsUnavailable((*lease)->CheckIdentity())) << "the file was not read";
  EXPECT_TRUE(absl::IsAborted((*lease)->CheckIdentity()));
}

TEST_F(ModelLeaseTest, AnEarlierIncarnationOfTheTaskIsFenced) {
  const auto sleeper = Acquire({.job = "j", .task = "chief-0", .incarnation = 1});
  ASSERT_TRUE(sleeper.ok());
  EXPECT_FALSE(Acquire({.job = "j", .task = "chief-0", .incarnation = 1}).ok());
  EXPECT_FALSE(Acquire({.job = "j", .task = "worker-0", .incarnation = 2}).ok());
  const auto second = Acquire({.job = "j", .task = "chief-0", .incarnation = 2});
  ASSERT_TRUE(second.ok()) << second.status();
  const absl::Status fenced = (*sleeper)->Check();
  EXPECT_TRUE(absl::IsAborted(fenced));
  EXPECT_THAT(ToStd(fenced.message()), HasSubstr("now chief-0 of job 'j' (incarnation 2)"));
  EXPECT_TRUE((*second)->Check().ok());
}

TEST_F(ModelLeaseTest, AFencedHolderDoesNotRemoveTheLease) {
  auto sleeper = *Acquire({.job = "j", .task = "chief-0", .incarnation = 1});
  const auto second = Acquire({.job = "j", .task = "chief-0", .incarnation = 2});
  sleeper.reset();
  EXPECT_TRUE((*second)->Check().ok());
}

TEST_F(ModelLeaseTest, AnEarlierIncarnationOnAnotherMachineIsFencedAtOnce) {
  for (const std::string more : {"", R"(, "beat_seconds": 10)"}) {
    Leave({.job = "j", .task = "chief-0", .incarnation = 4}, Elsewhere(), more);
    EXPECT_TRUE(Acquire({.job = "j", .task = "chief-0", .incarnation = 5}).ok());
  }
  EXPECT_EQ(waited(), 0);
}

TEST_F(ModelLeaseTest, UnfinishedFilesOfThePreviousHolderAreRemoved) {
  Leave({}, Dead());
  const std::string unfinished = io::TemporaryPath("m/model.ckpt-5.index");
  ASSERT_TRUE(io::WriteFileAtomically(*files_, unfinished, "x").ok());
  ASSERT_TRUE(Acquire().ok());
  EXPECT_TRUE(absl::IsNotFound(files_->Stat(unfinished).status()));
}

TEST_F(ModelLeaseTest, ADamagedLeaseIsFreeAndARemovedOneIsLost) {
  ASSERT_TRUE(io::WriteFileAtomically(*files_, kPath, "{\"job").ok());
  const auto lease = Acquire();
  ASSERT_TRUE(lease.ok()) << lease.status();
  ASSERT_TRUE(files_->Remove(kPath).ok());
  const absl::Status lost = (*lease)->Check();
  EXPECT_TRUE(absl::IsAborted(lost));
  EXPECT_THAT(ToStd(lost.message()), HasSubstr(StrCat(kPath, " was removed")));
}

}  // namespace
}  // namespace muster::train
