#include "muster/control/progress.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace muster::control {
namespace {

constexpr int64_t kNanosASecond = 1'000'000'000;

class ProgressTest : public ::testing::Test {
 protected:
  ProgressTest() {
    std::string path = ::testing::TempDir() + "/muster_progress_XXXXXX";
    folder_ = mkdtemp(path.data());
  }
  ~ProgressTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
  }
  ProgressOptions Options() const {
    return {.step_file = folder_ + "/step", .model_dir = folder_ + "/model"};
  }

  std::string folder_;
};

TEST_F(ProgressTest, WithoutASignOfLifeTheTimeSinceTheStartCounts) {
  Progress progress(Options(), 100 * kNanosASecond);
  progress.Look(130 * kNanosASecond, 100 * kNanosASecond);
  EXPECT_DOUBLE_EQ(progress.idle_seconds(), 30);
  EXPECT_FALSE(progress.step().has_value());
}

TEST_F(ProgressTest, OutputIsASignOfLife) {
  Progress progress(Options(), 0);
  progress.Look(30 * kNanosASecond, 20 * kNanosASecond);
  EXPECT_DOUBLE_EQ(progress.idle_seconds(), 10);
}

TEST_F(ProgressTest, AnotherStepIsASignOfLifeTheSameOneIsNot) {
  Progress progress(Options(), 0);
  Write("step", "7\n");
  progress.Look(30 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(progress.idle_seconds(), 0);
  EXPECT_EQ(progress.step(), 7);
  Write("step", "7\n");
  progress.Look(50 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(progress.idle_seconds(), 20);
  Write("step", "8");
  progress.Look(60 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(progress.idle_seconds(), 0);
  EXPECT_EQ(progress.step(), 8);
}

TEST_F(ProgressTest, ACheckpointThatAppearsIsToldFromOtherFiles) {
  std::filesystem::create_directory(folder_ + "/model");
  Write("model/model.ckpt-7.index", "old");
  Progress progress(Options(), 0);
  Write("model/graph.pbtxt", "x");
  Write("model/model.ckpt-0.index", "x");
  progress.Look(30 * kNanosASecond, 0);
  EXPECT_FALSE(progress.saved());
  Write("model/model.ckpt-9.index", "x");
  progress.Look(30 * kNanosASecond, 0);
  EXPECT_FALSE(progress.saved()) << "the folder is looked at now and then";
  progress.Look(30 * kNanosASecond, 0, /*last=*/true);
  EXPECT_TRUE(progress.saved());
}

TEST_F(ProgressTest, CountsStandBehindTheStep) {
  Progress progress(Options(), 0);
  Write("step", "7 trained=96 dropped=-1 and so=on x=1=2 =3\n");
  progress.Look(kNanosASecond, 0);
  EXPECT_EQ(progress.step(), 7);
  EXPECT_EQ(progress.counts(), (Counts{{"trained", 96}, {"dropped", -1}}));
  Write("step", "8\n");
  progress.Look(2 * kNanosASecond, 0);
  EXPECT_EQ(progress.counts(), Counts());
}

TEST_F(ProgressTest, AnyTextOfAStepFileWillDo) {
  Progress progress(Options(), 0);
  Write("step", "epoch 3");
  progress.Look(30 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(progress.idle_seconds(), 0);
  EXPECT_FALSE(progress.step().has_value());
}

// Their threads renew them as long as the process is there, whether it gets on or not.
TEST_F(ProgressTest, ARenewedLeaseIsNoSignOfLife) {
  std::filesystem::create_directories(folder_ + "/model");
  Progress progress(Options(), 0);
  Write("model/muster.lease.beat", "1");
  Write("model/model.ckpt-7.lease-evaluator-0", "1");
  progress.Look(10 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(progress.idle_seconds(), 10);
}

TEST_F(ProgressTest, ChangesInTheModelFolderAreSignsOfLife) {
  std::filesystem::create_directories(folder_ + "/model/eval");
  Write("model/old", "text");
  Progress progress(Options(), 0);
  progress.Look(10 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(progress.idle_seconds(), 10) << "what was there before counts";
  Write("model/eval/events", "a");  // a new file
  progress.Look(20 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(progress.idle_seconds(), 0);
  Write("model/eval/events", "ab");  // one that grows
  progress.Look(30 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(progress.idle_seconds(), 0);
  progress.Look(40 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(progress.idle_seconds(), 10);
  std::filesystem::remove(folder_ + "/model/old");
  progress.Look(50 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(progress.idle_seconds(), 0);
}

TEST_F(ProgressTest, AModelFolderMayComeLaterOrNever) {
  Progress progress(Options(), 0);
  progress.Look(10 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(progress.idle_seconds(), 10);
  std::filesystem::create_directories(folder_ + "/model");
  Write("model/checkpoint", "x");
  progress.Look(20 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(progress.idle_seconds(), 0);
}

TEST_F(ProgressTest, TheModelFolderIsNotLookedAtMoreOftenThanAsked) {
  ProgressOptions options = Options();
  options.look_seconds = 60;
  Progress progress(options, 0);
  std::filesystem::create_directories(folder_ + "/model");
  Write("model/checkpoint", "x");
  progress.Look(59 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(progress.idle_seconds(), 59);
  progress.Look(60 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(progress.idle_seconds(), 0);
}

}  // namespace
}  // namespace muster::control
