// The launcher with a program of the test in the place of `muster reach`.
#include "muster/launch/ssh/ssh_launcher.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "muster/io/local_file_system.h"
#include "muster/job/pod_template.h"

namespace muster::launch::ssh {
namespace {

using job::TaskId;
using job::TaskType;

constexpr TaskId kFirst{TaskType::kWorker, 0}, kSecond{TaskType::kWorker, 1};

class SshLauncherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/ssh-launcher-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_.path = name;
    for (const char* const below : {"/agents", "/logs"}) {
      ASSERT_TRUE(files_->MakeFolders(folder_.path + below).ok());
    }
    spec_.name = "j";
    spec_.replicas[TaskType::kWorker] = {2, job::RestartPolicy::kOnFailure,
                                         job::TemplateFor({"program"})};
    hosts_.all = {{.name = "a"}, {.name = "b"}};
    Begin();
  }
  void TearDown() override {
    launcher_.reset();
    EXPECT_TRUE(files_->RemoveAll(folder_.path).ok());
  }
  // As a coordinator does that is started (again).
  void Begin() {
    launcher_.reset();
    auto launcher = SshLauncher::Create({.folder = folder_,
                                         .program = "/bin/true",
                                         .coordinator_url = "https://127.0.0.1:1",
                                         .on_change = [] {}},
                                        spec_, hosts_);
    ASSERT_TRUE(launcher.ok()) << launcher.status();
    launcher_ = *std::move(launcher);
  }
  std::string Start(TaskId task, int64_t incarnation, bool stays = false) {
    launcher_->Start({.task = task, .incarnation = incarnation, .port_required = stays});
    return launcher_->GetPlace(task, incarnation);
  }

  const std::unique_ptr<io::FileSystem> files_ = io::NewLocalFileSystem();
  control::JobFolder folder_;
  job::JobSpec spec_;
  Hosts hosts_;
  std::unique_ptr<SshLauncher> launcher_;
};

TEST_F(SshLauncherTest, ACoordinatorThatIsStartedAgainFindsTheHostsOfTasksThatMoved) {
  EXPECT_EQ(Start(kFirst, 1), "host a");
  EXPECT_EQ(Start(kSecond, 2), "host b");
  launcher_->Kill(kFirst, 1);  // host a does not answer
  EXPECT_EQ(Start(kFirst, 3), "host b");
  Begin();
  EXPECT_EQ(launcher_->GetPlace(kFirst, 3), "host b");
  EXPECT_EQ(launcher_->GetPlace(kFirst, 1), "");
  EXPECT_EQ(launcher_->GetPlace(kSecond, 2), "host b");
  EXPECT_EQ(Start(kFirst, 4, /*stays=*/true), "host b");  // others know it there
  launcher_->Kill(kSecond, 2);                            // now host b is silent
  EXPECT_EQ(Start(kSecond, 5), "host a");
  Begin();
  EXPECT_EQ(launcher_->GetPlace(kSecond, 5), "host a");
}

TEST_F(SshLauncherTest, ARecordOfAnotherFormIsRefused) {
  ASSERT_TRUE(
      io::WriteFileAtomically(*files_, folder_.path + "/started.json", R"({"tasks": {"x": {}}})")
          .ok());
  const auto started = ReadStarted(folder_);
  EXPECT_TRUE(absl::IsInvalidArgument(started.status())) << started.status();
}

}  // namespace
}  // namespace muster::launch::ssh
