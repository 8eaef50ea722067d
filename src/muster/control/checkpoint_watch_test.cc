#include "muster/control/checkpoint_watch.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace muster::control {
namespace {

class CheckpointWatchTest : public ::testing::Test {
 protected:
  CheckpointWatchTest() {
    std::string path = ::testing::TempDir() + "/muster_checkpoints_XXXXXX";
    folder_ = mkdtemp(path.data());
  }
  ~CheckpointWatchTest() override { std::filesystem::remove_all(folder_); }

  void Save(int step) const {
    std::filesystem::create_directories(model());
    std::ofstream(model() + "/model.ckpt-" + std::to_string(step) + ".index") << "x";
    std::ofstream(model() + "/model.ckpt-" + std::to_string(step) + ".data-00000-of-00001") << "x";
  }
  std::string model() const { return folder_ + "/model"; }

  std::string folder_;
};

TEST_F(CheckpointWatchTest, AFolderThatIsRemovedHasLostItsNewestCheckpoint) {
  Save(100);
  Save(1200);
  CheckpointWatch watch(model());
  watch.Look();
  EXPECT_EQ(watch.lost_step(), std::nullopt);
  std::filesystem::remove_all(model());
  watch.Look();
  EXPECT_EQ(watch.lost_step(), 1200);
  Save(2000);
  watch.Look();
  EXPECT_EQ(watch.lost_step(), 1200) << "it stays known";
}

TEST_F(CheckpointWatchTest, SoHasOneThatIsTrainedAnewFromTheStart) {
  Save(1200);
  CheckpointWatch watch(model());
  std::filesystem::remove_all(model());
  Save(0);
  watch.Look();
  EXPECT_EQ(watch.lost_step(), 1200);
}

TEST_F(CheckpointWatchTest, OlderCheckpointsMayBeDeletedOnceThereIsALaterOne) {
  Save(1200);
  CheckpointWatch watch(model());
  std::filesystem::remove_all(model());
  Save(1300);
  watch.Look();
  std::filesystem::remove_all(model());
  watch.Look();
  EXPECT_EQ(watch.lost_step(), std::nullopt);
}

TEST_F(CheckpointWatchTest, WhereNothingWasThereIsNothingToLose) {
  for (const std::string& folder : {model(), std::string()}) {
    CheckpointWatch watch(folder);
    Save(7);
    std::filesystem::remove_all(model());
    watch.Look();
    EXPECT_EQ(watch.lost_step(), std::nullopt);
  }
}

}  // namespace
}  // namespace muster::control
