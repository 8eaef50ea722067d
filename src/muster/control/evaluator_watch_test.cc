#include "muster/control/evaluator_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "muster/formats/event.h"
#include "muster/io/local_file_system.h"
#include "muster/process/descriptor.h"

namespace muster::control {
namespace {

using Newest = job::EvaluatorWork::Newest;

class EvaluatorWatchTest : public ::testing::Test {
 protected:
  EvaluatorWatchTest() {
    std::string path = ::testing::TempDir() + "/muster_evaluator_XXXXXX";
    folder_ = mkdtemp(path.data());
  }
  ~EvaluatorWatchTest() override { std::filesystem::remove_all(folder_); }

  void SaveCheckpoint(int64_t step) const {
    std::ofstream(folder_ + "/checkpoint") << "model_checkpoint_path: \"model.ckpt-" << step
                                           << "\"\nall_model_checkpoint_paths: \"model.ckpt-1\"\n";
  }
  void Evaluate(int64_t step, const std::string& name = "eval") const {
    const SystemClock clock;
    formats::EventWriter writer(*files_, folder_ + "/" + name, clock);
    ASSERT_TRUE(writer.WriteScalars(step, {{"loss", 0.5F}}).ok());
    ASSERT_TRUE(writer.Close().ok());
  }
  // At so many seconds; each look comes after a pause.
  const job::EvaluatorWork& Look(EvaluatorWatch* watch, double seconds, double cpu_seconds = 0,
                                 int64_t output_bytes = 0) const {
    const auto nanos = [](double s) { return static_cast<int64_t>(s * 1e9); };
    watch->Look(
        {.now_nanos = nanos(seconds), .output_bytes = output_bytes, .cpu_seconds = cpu_seconds},
        [] { return std::vector<pid_t>{getpid()}; });
    return watch->work();
  }

  const std::unique_ptr<io::FileSystem> files_ = io::NewLocalFileSystem();
  std::string folder_;
};

TEST_F(EvaluatorWatchTest, TheNewestCheckpointIsThatOfTheEstimatorsFile) {
  EXPECT_FALSE(NewestCheckpoint(*files_, folder_).has_value());
  SaveCheckpoint(40);
  EXPECT_EQ(NewestCheckpoint(*files_, folder_), 40);
  std::ofstream(folder_ + "/checkpoint") << "model_checkpoint_path: \"/m/model.ckpt-7\"\n";
  EXPECT_EQ(NewestCheckpoint(*files_, folder_), 7);
  for (const char* other : {"model_checkpoint_path: \"ckpt-7\"\n", "", "model.ckpt-7",
                            "model_checkpoint_path: \"model.ckpt-7"}) {
    std::ofstream(folder_ + "/checkpoint") << other;
    EXPECT_FALSE(NewestCheckpoint(*files_, folder_).has_value()) << other;
  }
}

TEST_F(EvaluatorWatchTest, ItKnowsWhetherTheNewestCheckpointIsEvaluated) {
  EvaluatorWatch watch(folder_, 0, files_.get());
  EXPECT_EQ(Look(&watch, 1000).newest, Newest::kUnknown);
  SaveCheckpoint(40);
  EXPECT_EQ(Look(&watch, 2000).newest, Newest::kNotEvaluated);
  Evaluate(30);
  EXPECT_EQ(Look(&watch, 3000).newest, Newest::kNotEvaluated);
  Evaluate(40, "eval_other");
  EXPECT_EQ(Look(&watch, 4000).newest, Newest::kEvaluated);
  EXPECT_EQ(watch.work().still_seconds, 0);
  EXPECT_EQ(Look(&watch, 5000).still_seconds, 1000);
  SaveCheckpoint(41);
  EXPECT_EQ(Look(&watch, 6000).newest, Newest::kNotEvaluated);
  EXPECT_EQ(watch.work().still_seconds, 0);
}

TEST_F(EvaluatorWatchTest, AFolderThatNobodyNamedIsThatOfTheOpenEventFile) {
  SaveCheckpoint(40);
  Evaluate(40);
  EvaluatorWatch watch("", 0, files_.get());
  EXPECT_EQ(Look(&watch, 1000).newest, Newest::kUnknown);
  const std::filesystem::directory_iterator first(folder_ + "/eval");
  const process::Descriptor open_file(open(first->path().c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(open_file.valid());
  EXPECT_EQ(Look(&watch, 2000).newest, Newest::kEvaluated);
}

TEST_F(EvaluatorWatchTest, WhoOnlyWaitsIsIdle) {
  EvaluatorWatch watch("", 0, files_.get());
  Look(&watch, 10, /*cpu_seconds=*/5);  // it starts
  for (int second = 11; second <= 910; ++second) {
    // A little CPU for each look of its own, and a warning every ten minutes.
    Look(&watch, second, 5 + (second - 10) * 0.001, second > 600 ? 120 : 0);
  }
  EXPECT_EQ(watch.work().idle_seconds, 900);
}

TEST_F(EvaluatorWatchTest, WhoComputesOrWritesIsNot) {
  EvaluatorWatch computes("", 0, files_.get());
  EvaluatorWatch writes("", 0, files_.get());
  for (int second = 1; second <= 1000; ++second) {
    Look(&computes, second, second * 0.1);
    Look(&writes, second, 0, second * 20);
  }
  EXPECT_LT(computes.work().idle_seconds, 20);
  EXPECT_LT(writes.work().idle_seconds, 60);
}

}  // namespace
}  // namespace muster::control
