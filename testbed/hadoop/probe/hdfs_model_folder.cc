// A model folder on the HDFS of MUSTER_HDFS_FOLDER ("hdfs://..."): what it holds after a process
// that saved and wrote events ended at any change, and which of two trainings may write it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/checkpoint/async_saver.h"
#include "muster/checkpoint/checkpoint_test_util.h"
#include "muster/files/file_systems.h"
#include "muster/formats/event.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/fenced_file_system.h"
#include "muster/train/model_lease.h"

namespace muster {
namespace {

class HdfsModelFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = StrCat(std::getenv("MUSTER_HDFS_FOLDER"), "/",
                     testing::UnitTest::GetInstance()->current_test_info()->name());
    ASSERT_TRUE(files_->MakeFolders(folder_).ok());
  }

  // Writes an event, saves `step`, and writes another event.
  absl::Status Train(io::FileSystem& files, int64_t step) const {
    formats::EventWriter events(files, folder_, clock_);
    MUSTER_RETURN_IF_ERROR(events.WriteScalars(step, {{"loss", 1.0F}}));
    MUSTER_RETURN_IF_ERROR(events.Flush());
    checkpoint::Weights weights(static_cast<float>(step));
    checkpoint::AsyncSaver saver(files, clock_, folder_, {.keep_max = 2});
    MUSTER_RETURN_IF_ERROR(
        saver.Start(step, weights.tensors(), {{"position", StrCat("at ", step)}}));
    weights.Change(saver.frozen(), -1);
    MUSTER_RETURN_IF_ERROR(saver.Wait());
    MUSTER_RETURN_IF_ERROR(events.WriteScalars(step + 1, {{"loss", 0.5F}}));
    return events.Close();
  }

  // The step of the newest checkpoint, which must be whole; every event file can be read.
  int64_t Look(const std::string& what) {
    const auto loaded = checkpoint::LoadLatest(*files_, folder_);
    EXPECT_TRUE(loaded.ok()) << what << ": " << loaded.status();
    if (!loaded.ok()) return -1;
    EXPECT_EQ(loaded->note, "") << what;
    EXPECT_EQ(loaded->value, static_cast<float>(loaded->step)) << what;
    const std::vector<std::string> names = files_->List(folder_).value();
    for (const std::string& name : names) {
      if (!name.starts_with("events.out")) continue;
      const auto events = formats::ReadScalarEvents(*files_, io::JoinPath(folder_, name));
      EXPECT_TRUE(events.ok()) << what << ": " << events.status();
    }
    return loaded->step;
  }

  static train::LeaseOptions AnotherMachine(double beat_seconds) {
    train::LeaseOptions options = {.beat_seconds = beat_seconds, .expiry_seconds = 2};
    options.process.machine = "another";
    return options;
  }

  const SystemClock clock_ = {};
  const std::unique_ptr<io::FileSystem> files_ = files::OpenFileSystems();
  std::string folder_;
};

TEST_F(HdfsModelFolder, ANewestCheckpointLoadsAfterAnEndAtEveryChange) {
  int64_t step = 1;
  ASSERT_TRUE(Train(*files_, step).ok());
  int changes = 0;
  for (bool ended = true; ended; ++changes) {
    ASSERT_LT(changes, 100);
    const int64_t next = step + 1;
    io::FaultFileSystem files(*files_);
    files.CrashAtChange(changes + 1);
    const absl::Status trained = Train(files, next);
    ended = files.changes() > changes;
    const std::string what = StrCat("ended at change ", changes + 1);
    const int64_t found = Look(what);
    EXPECT_TRUE(found == next || (!trained.ok() && found == step)) << what << ": " << found;
    ASSERT_TRUE(Train(*files_, next + 1).ok());
    step = next + 1;
    EXPECT_EQ(Look("after it"), step);
    const std::vector<std::string> names = files_->List(folder_).value();
    EXPECT_THAT(names, testing::Not(testing::Contains(testing::ContainsRegex("ckpt.*[.]tmp-"))));
  }
  EXPECT_GT(changes, 20);
}

TEST_F(HdfsModelFolder, ATrainingWhoseLeaseExpiredChangesNothingMore) {
  constexpr double kYear = 365.0 * 24 * 3600;
  const auto sleeper =
      train::ModelLease::Acquire(*files_, folder_, {}, clock_, AnotherMachine(kYear));
  ASSERT_TRUE(sleeper.ok()) << sleeper.status();
  io::FencedFileSystem files(
      *files_, [&] { return (*sleeper)->Check(); }, [&] { return (*sleeper)->CheckIdentity(); });
  ASSERT_TRUE(Train(files, 1).ok());
  const std::string path = io::JoinPath(folder_, "events");
  const auto events = files.OpenForWrite(path);
  ASSERT_TRUE(events.ok() && (*events)->Append("old").ok() && (*events)->Flush().ok());

  const auto lease =
      train::ModelLease::Acquire(*files_, folder_, {}, clock_, {.expiry_seconds = 2});
  ASSERT_TRUE(lease.ok()) << lease.status();
  ASSERT_TRUE(Train(*files_, 2).ok());
  EXPECT_TRUE(absl::IsAborted(Train(files, 3)));
  EXPECT_TRUE(absl::IsAborted((*events)->Append("older")));
  EXPECT_EQ(io::ReadFile(*files_, path).value_or(""), "old");
  EXPECT_EQ(Look("after it"), 2);
}

TEST_F(HdfsModelFolder, ATrainingThatRenewsItsLeaseKeepsIt) {
  const auto holder = train::ModelLease::Acquire(*files_, folder_, {}, clock_, AnotherMachine(0.2));
  ASSERT_TRUE(holder.ok()) << holder.status();
  const auto second =
      train::ModelLease::Acquire(*files_, folder_, {}, clock_, {.expiry_seconds = 2});
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  EXPECT_THAT(std::string(ToStd(second.status().message())),
              testing::HasSubstr("renews its lease"));
  EXPECT_TRUE((*holder)->Check().ok());
}

}  // namespace
}  // namespace muster
