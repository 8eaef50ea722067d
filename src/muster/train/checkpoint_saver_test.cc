#include "muster/train/checkpoint_saver.h"

#include "muster/io/fault_file_system.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CheckpointSaverTest : public TrainingTest {
 protected:
  // Saves every 5 steps through `files`.
  absl::StatusOr<TrainResult> TrainThrough(io::FileSystem& files, const std::string& folder) {
    const auto model = model::ParseModelSpec(*files_, kTestSpec, "spec.yaml");
    EXPECT_TRUE(model.ok()) << model.status();
    RunConfig config = Config(folder);
    config.seed = model->train.seed;
    config.save_checkpoints_steps = 5;
    const auto estimator = Estimator::Create(files, clock_, *model, config);
    EXPECT_TRUE(estimator.ok()) << estimator.status();
    Progress progress(ProgressStyle::kNone, 2, clock_);
    return (*estimator)->Train(Training(), progress, never_);
  }
};

TEST_F(CheckpointSaverTest, AFailureInTheBackgroundEndsTheTrainingWithItsCause) {
  ASSERT_TRUE(TrainThrough(*files_, "whole").ok());
  for (const int n : {1, 2, 7, 20, 30}) {
    const std::string folder = StrCat("model", n);
    io::FaultFileSystem files(*files_);
    // Of each save one rename is that of an index; the first of all is that of the spec.
    files.FailNth(io::FileOperation::kRename, 1 + n, absl::ResourceExhaustedError("disk full"));
    const auto failed = TrainThrough(files, folder);
    EXPECT_TRUE(absl::IsResourceExhausted(failed.status())) << n << ": " << failed.status();
    EXPECT_THAT(std::string(failed.status().message()),
                AllOf(HasSubstr("disk full"), HasSubstr(StrCat("saving ", folder))));
    // What was saved before it goes on to the same end.
    const auto resumed = TrainThrough(*files_, folder);
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    EXPECT_EQ(Weights(folder), Weights("whole")) << n;
  }
}

TEST_F(CheckpointSaverTest, ABrokenNewestCheckpointIsPassedOverForTheOneBefore) {
  ASSERT_TRUE(TrainThrough(*files_, "model").ok());
  const auto whole = Weights("model");
  const std::string path = "model/model.ckpt-57.data-00000-of-00001";
  std::string data = *io::ReadFile(*files_, path);
  data[data.size() / 2] ^= 1;
  ASSERT_TRUE(io::WriteFileAtomically(*files_, path, data).ok());
  const auto resumed = TrainThrough(*files_, "model");
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->first_step, 55);
  EXPECT_EQ(Weights("model"), whole);
}

TEST_F(CheckpointSaverTest, ATrainingDoesNotBeginAnewOverBrokenCheckpoints) {
  TrainSpec spec = Training();
  spec.max_steps = 1;
  ASSERT_TRUE(Train("model", spec).ok());
  const auto names = files_->List("model");
  ASSERT_TRUE(names.ok());
  for (const std::string& name : *names) {
    if (name.find(".data-") == std::string::npos) continue;
    ASSERT_TRUE(io::WriteFileAtomically(*files_, StrCat("model/", name), "cut").ok());
  }
  const auto refused = Train("model", Training());
  EXPECT_TRUE(absl::IsDataLoss(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("no whole checkpoint in model"));
}

}  // namespace
}  // namespace muster::train
