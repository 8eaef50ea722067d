// The state of the folder after a save in which an operation fails, or in which the process ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/base/clock.h"
#include "muster/checkpoint/async_saver.h"
#include "muster/checkpoint/checkpoint_test_util.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::checkpoint {
namespace {

struct Scene {
  std::string name;
  bool again;     // step 3 was already saved, with another value; else steps 1 and 2 were
  bool only_one;  // with `again`: there is no other checkpoint
  bool in_background = true;
};

// Saves step 3 with the value 30.
absl::Status SaveThree(io::FileSystem& files, bool in_background, int keep) {
  const FakeClock clock;
  Weights weights(30);
  AsyncSaver saver(files, clock, "m", {.keep_max = keep});
  const Strings strings = {{"position", "at 3"}};
  if (!in_background) return saver.SaveNow(3, weights.tensors(), strings).status();
  MUSTER_RETURN_IF_ERROR(saver.Start(3, weights.tensors(), strings));
  weights.Change(saver.frozen(), -1);
  return saver.Wait();
}

// Saves while `fault` is at work; then the folder must hold a whole checkpoint and none that is
// broken, and the next save must work.
template <typename Fault>
void ExpectSurvives(const Scene& scene, const std::string& what, Fault&& fault, bool* succeeded) {
  const auto memory = io::NewMemoryFileSystem();
  const int keep = 2;
  if (!scene.only_one) {
    ASSERT_TRUE(SaveStep(*memory, 1, 1, keep).ok());
    ASSERT_TRUE(SaveStep(*memory, 2, 2, keep).ok());
  }
  if (scene.again || scene.only_one) {
    ASSERT_TRUE(SaveStep(*memory, 3, 3, keep).ok());
  }
  io::FaultFileSystem files(*memory);
  fault(files);
  const absl::Status saved = SaveThree(files, scene.in_background, keep);
  *succeeded = saved.ok();

  const auto loaded = LoadLatest(*memory);
  ASSERT_TRUE(loaded.ok()) << what << ": " << loaded.status();
  EXPECT_EQ(loaded->note, "") << what;
  const float old_value = scene.again || scene.only_one ? 3 : 2;
  EXPECT_TRUE(loaded->value == 30 || (!saved.ok() && loaded->value == old_value))
      << what << ": " << loaded->value;
  EXPECT_EQ(loaded->step, loaded->value == 2 ? 2 : 3) << what;

  const auto next = SaveStep(*memory, 4, 4, keep);
  ASSERT_TRUE(next.ok()) << what << ": " << next.status();
  EXPECT_EQ(LoadLatest(*memory)->value, 4) << what;
  const auto names = *memory->List("m");
  for (const std::string& name : names) {
    EXPECT_EQ(name.find(".tmp-"), std::string::npos) << what << ": " << name;
    const size_t data = name.find(".data-");
    if (data != std::string::npos) {
      EXPECT_THAT(names, ::testing::Contains(name.substr(0, data) + ".index")) << what;
    }
  }
}

class FaultTest : public ::testing::TestWithParam<Scene> {
 protected:
  // Runs with n = 1, 2, ... until a save is not reached by the fault; returns that n.
  template <typename Fault>
  int ForEachPoint(const std::string& name, Fault&& fault) {
    bool succeeded = false;
    int n = 0;
    int successes = 0;
    // Failures of removals are ignored, so that one success does not end the loop.
    while (successes < 12 && n < 200) {
      ++n;
      ExpectSurvives(
          GetParam(), StrCat(name, " ", n), [&](io::FaultFileSystem& files) { fault(files, n); },
          &succeeded);
      successes = succeeded ? successes + 1 : 0;
      if (HasFatalFailure()) return n;
    }
    return n - successes + 1;
  }
};

TEST_P(FaultTest, SurvivesACrashAtEveryChange) {
  EXPECT_GT(ForEachPoint("crash at change",
                         [](io::FaultFileSystem& files, int n) { files.CrashAtChange(n); }),
            12);
}

TEST_P(FaultTest, SurvivesAnErrorAtEveryOperation) {
  using Operation = io::FileOperation;
  for (const Operation operation :
       {Operation::kOpen, Operation::kRead, Operation::kStat, Operation::kList, Operation::kCreate,
        Operation::kWrite, Operation::kFlush, Operation::kSync, Operation::kClose,
        Operation::kMakeFolders, Operation::kRename, Operation::kRemove, Operation::kSyncFolder}) {
    ForEachPoint(StrCat("operation ", static_cast<int>(operation)),
                 [&](io::FaultFileSystem& files, int n) {
                   files.FailNth(operation, n, absl::InternalError("made to fail"));
                 });
  }
}

TEST_P(FaultTest, SurvivesAShortWrite) {
  EXPECT_GT(ForEachPoint("short write",
                         [](io::FaultFileSystem& files, int n) {
                           files.ShortWriteNth(n, absl::ResourceExhaustedError("made to fail"));
                         }),
            4);
}

TEST_P(FaultTest, SurvivesAFullDisk) {
  EXPECT_GT(ForEachPoint("disk with 40 bytes times",
                         [](io::FaultFileSystem& files, int n) { files.FillDiskAfter(n * 40); }),
            30);
}

INSTANTIATE_TEST_SUITE_P(Scenes, FaultTest,
                         ::testing::Values(Scene{"NewStep", false, false},
                                           Scene{"NewStepNow", false, false, false},
                                           Scene{"SameStep", true, false},
                                           Scene{"OnlyOne", false, true}),
                         [](const auto& scene) { return scene.param.name; });

}  // namespace
}  // namespace muster::checkpoint
