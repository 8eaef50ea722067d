// Kills a process with SIGKILL in the middle of a save, on the real file system.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "muster/base/clock.h"
#include "muster/checkpoint/async_saver.h"
#include "muster/checkpoint/checkpoint_test_util.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/local_file_system.h"

namespace muster::checkpoint {
namespace {

class KillTest : public ::testing::Test {
 protected:
  KillTest() : files_(io::NewLocalFileSystem()) {}
  void SetUp() override {
    folder_ = StrCat(::testing::TempDir(), "/muster_kill_", getpid());
    ASSERT_TRUE(files_->RemoveAll(folder_).ok());
  }
  void TearDown() override { ASSERT_TRUE(files_->RemoveAll(folder_).ok()); }

  // Saves `step` with that value.
  absl::Status Save(io::FileSystem& files, int64_t step) const {
    const SystemClock clock;
    Weights weights(static_cast<float>(step));
    AsyncSaver saver(files, clock, folder_, {.keep_max = 2});
    MUSTER_RETURN_IF_ERROR(
        saver.Start(step, weights.tensors(), {{"position", StrCat("at ", step)}}));
    weights.Change(saver.frozen(), -1);
    return saver.Wait();
  }

  // Runs `work` in a child process.
  template <typename Work>
  static pid_t InChild(Work&& work) {
    std::fflush(nullptr);  // else the child may print buffered output again
    const pid_t child = fork();
    if (child == 0) _exit(work() ? 0 : 1);
    return child;
  }

  // Returns whether SIGKILL ended the child; it must not have failed in any other way.
  static bool WasKilled(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return true;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    return false;
  }

  // Returns the step of the newest checkpoint. All checkpoints of the folder must be intact.
  int64_t LoadedStep(const std::string& what) {
    const auto loaded = LoadLatest(*files_, folder_);
    EXPECT_TRUE(loaded.ok()) << what << ": " << loaded.status();
    if (!loaded.ok()) return -1;
    EXPECT_EQ(loaded->note, "") << what;
    EXPECT_EQ(loaded->value, static_cast<float>(loaded->step)) << what;
    return loaded->step;
  }

  std::unique_ptr<io::FileSystem> files_;
  std::string folder_;
};

TEST_F(KillTest, SurvivesAKillAtEveryChangeOfASave) {
  int64_t step = 1;
  ASSERT_TRUE(Save(*files_, step).ok());
  int changes = 0;
  for (bool killed = true; killed; ++changes) {
    ASSERT_LT(changes, 100);
    const int64_t next = step + 1;
    killed = WasKilled(InChild([&] {
      io::FaultFileSystem files(*files_);
      files.KillAtChange(changes + 1);
      return Save(files, next).ok();
    }));
    const int64_t found = LoadedStep(StrCat("killed at change ", changes + 1));
    EXPECT_TRUE(found == next || (killed && found == step)) << changes + 1 << ": " << found;
    // The next save removes the leftovers.
    ASSERT_TRUE(Save(*files_, next + 1).ok());
    step = next + 1;
    EXPECT_EQ(LoadedStep("after it"), step);
    const auto names = *files_->List(folder_);
    EXPECT_EQ(names.size(), 5u) << ::testing::PrintToString(names);
  }
  EXPECT_GT(changes, 20);  // creations, writes, syncs, renames of data, index and state, removals
}

TEST_F(KillTest, SurvivesAKillAtAnyMoment) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  ASSERT_TRUE(Save(*files_, 1).ok());
  int64_t last = 1;
  for (int round = 0; round < 20; ++round) {
    const pid_t child = InChild([&] {
      for (int64_t step = last + 1;; ++step) {
        if (!Save(*files_, step).ok()) return false;
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 40'000));
    kill(child, SIGKILL);
    EXPECT_TRUE(WasKilled(child));
    const int64_t found = LoadedStep(StrCat("seed ", seed, " round ", round));
    EXPECT_GE(found, last);
    last = found;
  }
}

}  // namespace
}  // namespace muster::checkpoint
