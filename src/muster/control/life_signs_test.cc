#include "muster/control/life_signs.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace muster::control {
namespace {

constexpr int64_t kNanosASecond = 1'000'000'000;

class LifeSignsTest : public ::testing::Test {
 protected:
  LifeSignsTest() {
    std::string path = ::testing::TempDir() + "/muster_life_signs_XXXXXX";
    folder_ = mkdtemp(path.data());
  }
  ~LifeSignsTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
  }
  LifeSignsOptions Options() const {
    return {.step_file = folder_ + "/step", .model_dir = folder_ + "/model"};
  }

  std::string folder_;
};

TEST_F(LifeSignsTest, WithoutASignOfLifeTheTimeSinceTheStartCounts) {
  LifeSigns signs(Options(), 100 * kNanosASecond);
  signs.Look(130 * kNanosASecond, 100 * kNanosASecond);
  EXPECT_DOUBLE_EQ(signs.idle_seconds(), 30);
  EXPECT_FALSE(signs.step().has_value());
}

TEST_F(LifeSignsTest, OutputIsASignOfLife) {
  LifeSigns signs(Options(), 0);
  signs.Look(30 * kNanosASecond, 20 * kNanosASecond);
  EXPECT_DOUBLE_EQ(signs.idle_seconds(), 10);
}

TEST_F(LifeSignsTest, AnotherStepIsASignOfLifeTheSameOneIsNot) {
  LifeSigns signs(Options(), 0);
  Write("step", "7\n");
  signs.Look(30 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(signs.idle_seconds(), 0);
  EXPECT_EQ(signs.step(), 7);
  Write("step", "7\n");
  signs.Look(50 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(signs.idle_seconds(), 20);
  Write("step", "8");
  signs.Look(60 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(signs.idle_seconds(), 0);
  EXPECT_EQ(signs.step(), 8);
}

TEST_F(LifeSignsTest, ACheckpointThatAppearsIsToldFromOtherFiles) {
  std::filesystem::create_directory(folder_ + "/model");
  Write("model/model.ckpt-7.index", "old");
  LifeSigns signs(Options(), 0);
  Write("model/graph.pbtxt", "x");
  Write("model/model.ckpt-0.index", "x");
  signs.Look(30 * kNanosASecond, 0);
  EXPECT_FALSE(signs.saved());
  Write("model/model.ckpt-9.index", "x");
  signs.Look(30 * kNanosASecond, 0);
  EXPECT_FALSE(signs.saved()) << "the folder is looked at now and then";
  signs.Look(30 * kNanosASecond, 0, /*last=*/true);
  EXPECT_TRUE(signs.saved());
}

TEST_F(LifeSignsTest, CountsFollowTheStep) {
  LifeSigns signs(Options(), 0);
  Write("step", "7 trained=96 dropped=-1 and so=on x=1=2 =3\n");
  signs.Look(kNanosASecond, 0);
  EXPECT_EQ(signs.step(), 7);
  EXPECT_EQ(signs.counts(), (Counts{{"trained", 96}, {"dropped", -1}}));
  Write("step", "8\n");
  signs.Look(2 * kNanosASecond, 0);
  EXPECT_EQ(signs.counts(), Counts());
}

TEST_F(LifeSignsTest, AnyTextOfAStepFileWillDo) {
  LifeSigns signs(Options(), 0);
  Write("step", "epoch 3");
  signs.Look(30 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(signs.idle_seconds(), 0);
  EXPECT_FALSE(signs.step().has_value());
}

// Their threads renew them as long as the process is there, whether it gets on or not.
TEST_F(LifeSignsTest, ARenewedLeaseIsNoSignOfLife) {
  std::filesystem::create_directories(folder_ + "/model");
  LifeSigns signs(Options(), 0);
  Write("model/muster.lease.beat", "1");
  Write("model/model.ckpt-7.lease-evaluator-0", "1");
  signs.Look(10 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(signs.idle_seconds(), 10);
}

TEST_F(LifeSignsTest, ChangesInTheModelFolderAreSignsOfLife) {
  std::filesystem::create_directories(folder_ + "/model/eval");
  Write("model/old", "text");
  LifeSigns signs(Options(), 0);
  signs.Look(10 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(signs.idle_seconds(), 10) << "what was there before counts";
  Write("model/eval/events", "a");  // a new file
  signs.Look(20 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(signs.idle_seconds(), 0);
  Write("model/eval/events", "ab");  // one that grows
  signs.Look(30 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(signs.idle_seconds(), 0);
  signs.Look(40 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(signs.idle_seconds(), 10);
  std::filesystem::remove(folder_ + "/model/old");
  signs.Look(50 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(signs.idle_seconds(), 0);
}

TEST_F(LifeSignsTest, AModelFolderMayComeLaterOrNever) {
  LifeSigns signs(Options(), 0);
  signs.Look(10 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(signs.idle_seconds(), 10);
  std::filesystem::create_directories(folder_ + "/model");
  Write("model/checkpoint", "x");
  signs.Look(20 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(signs.idle_seconds(), 0);
}

TEST_F(LifeSignsTest, TheModelFolderIsNotLookedAtMoreOftenThanAsked) {
  LifeSignsOptions options = Options();
  options.look_seconds = 60;
  LifeSigns signs(options, 0);
  std::filesystem::create_directories(folder_ + "/model");
  Write("model/checkpoint", "x");
  signs.Look(59 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(signs.idle_seconds(), 59);
  signs.Look(60 * kNanosASecond, 0);
  EXPECT_DOUBLE_EQ(signs.idle_seconds(), 0);
}

}  // namespace
}  // namespace muster::control
