#include "muster/launch/local/job_removal.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "muster/control/incarnation.h"
#include "muster/control/journal.h"
#include "muster/control/status_json.h"
#include "muster/io/private_file_system.h"
#include "muster/job/manifest.h"
#include "muster/job/pod_template.h"

namespace muster::launch::local {
namespace {

namespace fs = std::filesystem;

class JobRemovalTest : public ::testing::Test {
 protected:
  JobRemovalTest() {
    std::string path = ::testing::TempDir() + "/muster_removal_XXXXXX";
    home_ = mkdtemp(path.data());
    folder_.path = home_ + "/jobs/j";
    for (const char* name : {"agents", "logs", "staged", "work/worker-0"}) {
      fs::create_directories(folder_.path + "/" + name);
    }
    Write(folder_.path + "/logs/worker-0.log", "said");
    Write(folder_.path + "/staged/train.py", "pass");
    fs::create_symlink("../../staged/train.py", folder_.path + "/work/worker-0/train.py");
    Write(home_ + "/data.csv", "1,2");
    End(100, {});
  }
  ~JobRemovalTest() override { fs::remove_all(home_); }

  static void Write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
  }
  // The journal of a job that succeeded at `wall`.
  void End(double wall, std::optional<int64_t> ttl_seconds) const {
    job::JobSpec spec;
    spec.name = "j";
    spec.replicas[job::TaskType::kWorker] = {.pod_template = job::TemplateFor({"true"})};
    spec.ttl_seconds = ttl_seconds;
    job::JobStatus status;
    status.phase = job::JobPhase::kSucceeded;
    status.completion_time = wall;
    const auto files = io::NewPrivateFileSystem();
    auto journal = control::Journal::Open(*files, folder_.journal());
    ASSERT_TRUE(journal.ok()) << journal.status();
    const absl::Status written = (*journal)->Append({{"format", 1},
                                                     {"manifest", job::PrintManifest(spec)},
                                                     {"status", control::ToJson(status)}});
    ASSERT_TRUE(written.ok()) << written;
  }

  std::string home_;
  control::JobFolder folder_;
};

TEST_F(JobRemovalTest, RecordLogsAndStagingGo) {
  const auto kept = RemoveJob(folder_, /*with_work=*/false);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(*kept, "");
  EXPECT_FALSE(fs::exists(folder_.path));
}

TEST_F(JobRemovalTest, AWorkFolderWithFilesOfItsOwnStaysUnlessToldToGo) {
  const std::string own = folder_.path + "/work/worker-0/result.txt";
  Write(own, "precious");
  fs::create_symlink(home_ + "/data.csv", folder_.path + "/work/worker-0/linked.csv");
  auto kept = RemoveJob(folder_, /*with_work=*/false);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(*kept, folder_.work());
  EXPECT_TRUE(fs::exists(own));
  EXPECT_TRUE(fs::is_symlink(folder_.path + "/work/worker-0/linked.csv"));
  EXPECT_FALSE(fs::is_symlink(folder_.path + "/work/worker-0/train.py"));
  for (const char* name : {"journal", "logs", "staged", "agents"}) {
    EXPECT_FALSE(fs::exists(folder_.path + "/" + name)) << name;
  }
  kept = RemoveJob(folder_, /*with_work=*/true);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_FALSE(fs::exists(folder_.path));
  EXPECT_TRUE(fs::exists(home_ + "/data.csv"));
}

TEST_F(JobRemovalTest, WhatRunsIsNotTouched) {
  {
    const auto lock = control::JobLock::Take(folder_.lock());
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_TRUE(absl::IsFailedPrecondition(RemoveJob(folder_, true).status()));
  }
  {
    const auto claim = control::IncarnationClaim::Take(
        folder_.path, {.task = {job::TaskType::kWorker, 0}, .incarnation = 1});
    ASSERT_TRUE(claim.ok() && claim->has_value());
    EXPECT_TRUE(AnyAgentLives(folder_));
    EXPECT_TRUE(absl::IsFailedPrecondition(RemoveJob(folder_, true).status()));
  }
  EXPECT_FALSE(AnyAgentLives(folder_));
  EXPECT_TRUE(fs::exists(folder_.journal()));
}

TEST_F(JobRemovalTest, ATimeToLiveRemovesTheJobWhenItHasPassed) {
  std::string kept;
  const auto removed = [&](double now) { return RemoveIfExpired(folder_, now, &kept).value(); };
  EXPECT_FALSE(removed(1e9)) << "it has none";
  End(100, 50);
  EXPECT_FALSE(removed(149));
  EXPECT_TRUE(removed(150));
  EXPECT_EQ(kept, "");
  EXPECT_FALSE(fs::exists(folder_.path));
}

TEST_F(JobRemovalTest, TheJournalIsItsOwnersAlone) {
  EXPECT_EQ(fs::status(folder_.journal()).permissions() & fs::perms::mask,
            fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace
}  // namespace muster::launch::local
