// The weights that an evaluation, a prediction and an export use: the newest, older ones if the
// newest are corrupt, the best, or those of an export.
#include <algorithm>

#include "muster/checkpoint/best.h"
#include "muster/io/fault_file_system.h"
#include "muster/score/inference.h"
#include "muster/train/train_and_evaluate.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CheckpointChoiceTest : public TrainingTest {
 protected:
  // Makes checkpoints 10 and 20, and flips a bit in a weight of the newest.
  void BreakTheNewest() {
    for (const int step : {10, 20}) {
      TrainSpec spec = Training();
      spec.max_steps = step;
      ASSERT_TRUE(Train("model", spec).ok());
    }
    const std::string path = "model/model.ckpt-20.data-00000-of-00001";
    std::string bytes = *io::ReadFile(*files_, path);
    bytes[2] = static_cast<char>(bytes[2] ^ 1);
    Write(path, bytes);
  }

  absl::StatusOr<PredictResult> Predict(Estimator& estimator) {
    Progress progress(ProgressStyle::kNone, 2, clock_);
    const auto take = [](const InputBatch&, const engine::Predictions&) {
      return absl::OkStatus();
    };
    return estimator.Predict(Evaluation().input, take, progress);
  }
  absl::StatusOr<EvalResult> Evaluate(Estimator& estimator, const EvalSpec& spec) {
    Progress progress(ProgressStyle::kNone, 2, clock_);
    return estimator.Evaluate(spec, progress);
  }

  // Trains with an evaluation every 10 steps and keeps two checkpoints.
  absl::StatusOr<TrainAndEvaluateResult> TrainAndKeep(const BestBy& best_by, int64_t max_steps) {
    RunConfig config = Config("model");
    config.seed = 5;
    config.save_checkpoints_steps = 10;
    config.keep_checkpoint_max = 2;
    const auto spec = model::ParseModelSpec(*files_, kTestSpec, "spec.yaml");
    MUSTER_RETURN_IF_ERROR(spec.status());
    MUSTER_ASSIGN_OR_RETURN(const auto estimator,
                            Estimator::Create(*files_, clock_, *spec, config));
    EvalSpec eval = Evaluation();
    eval.start_delay_secs = eval.throttle_secs = 0;
    eval.best_by = best_by;
    TrainSpec train = Training();
    train.max_steps = max_steps;
    Progress progress(ProgressStyle::kNone, 2, clock_);
    const auto report = [&](const EvalResult& result, const std::vector<std::string>&) {
      for (const auto& [name, value] : result.metrics) {
        if (name == "loss") losses_[result.step] = value;
      }
    };
    return TrainAndEvaluate(*estimator, train, eval, progress, never_, report);
  }
  std::vector<std::string> Checkpoints() {
    std::vector<std::string> names;
    const std::vector<std::string> all = *files_->List("model");
    for (const std::string& name : all) {
      if (name.ends_with(".index")) names.push_back(name.substr(0, name.rfind('.')));
    }
    return names;
  }

  std::map<int64_t, double> losses_;  // by step
};

TEST_F(CheckpointChoiceTest, PredictionAndExportRefuseABrokenNewest) {
  BreakTheNewest();
  const auto estimator = NewEstimator(kTestSpec, "model");
  for (const absl::Status& status : {Predict(*estimator).status(), estimator->Export("saved")}) {
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("model.ckpt-20.data"),
                      HasSubstr("give --fall-back to take model/model.ckpt-10")));
  }
  EXPECT_FALSE(files_->Stat("saved").ok());
  estimator->set_fall_back(true);
  const auto predicted = Predict(*estimator);
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  EXPECT_EQ(predicted->checkpoint, "model/model.ckpt-10");
  EXPECT_EQ(predicted->step, 10);
  ASSERT_TRUE(estimator->Export("saved").ok());
  EXPECT_EQ(estimator->restored_checkpoint(), "model/model.ckpt-10");
  EXPECT_THAT(estimator->restore_note(), HasSubstr("passed over for model/model.ckpt-10"));
}

TEST_F(CheckpointChoiceTest, AnEvaluationFallsBackAndSaysSo) {
  BreakTheNewest();
  const auto estimator = NewEstimator(kTestSpec, "model");
  const auto result = Evaluate(*estimator, Evaluation());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->checkpoint, "model/model.ckpt-10");
  EXPECT_THAT(estimator->restore_note(), HasSubstr("passed over"));
}

TEST_F(CheckpointChoiceTest, ATrainingDoesNotBeginAnewOverBrokenCheckpoints) {
  BreakTheNewest();
  TrainSpec spec = Training();
  spec.max_steps = 30;
  for (const char* const name : {"model.ckpt-10.index", "model.ckpt-10.data-00000-of-00001"}) {
    ASSERT_TRUE(files_->Remove(StrCat("model/", name)).ok());
  }
  ASSERT_TRUE(files_->Stat("model/model.ckpt-0.index").ok());
  const absl::Status status = Train("model", spec).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(ToStd(status.message())),
              AllOf(HasSubstr("model/model.ckpt-0 would begin the training anew"),
                    HasSubstr("model.ckpt-20.data")));
}

TEST_F(CheckpointChoiceTest, UntrainedWeightsAreNotOffered) {
  BreakTheNewest();
  ASSERT_TRUE(files_->Remove("model/model.ckpt-10.index").ok());
  const auto estimator = NewEstimator(kTestSpec, "model");
  for (const bool fall_back : {false, true}) {
    estimator->set_fall_back(fall_back);
    const absl::Status status = Predict(*estimator).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("besides model/model.ckpt-0, whose weights are untrained"),
                      HasSubstr("model.ckpt-20.data"), testing::Not(HasSubstr("--fall-back"))));
  }
}

TEST_F(CheckpointChoiceTest, AWarmStartDoesNotFallBack) {
  BreakTheNewest();
  Write("model/model.ckpt-20.index", "no index");
  const auto estimator = NewEstimator(kTestSpec, "warm");
  estimator->set_warm_start({.from = "model"});
  Progress progress(ProgressStyle::kNone, 2, clock_);
  const absl::Status status = estimator->Train(Training(), progress, never_).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("warm start"), HasSubstr("to start from model/model.ckpt-10, give it")));
}

TEST_F(CheckpointChoiceTest, AnExportIsUsedLikeItsCheckpoint) {
  TrainSpec spec = Training();
  spec.max_steps = 10;
  ASSERT_TRUE(Train("model", spec).ok());
  const auto estimator = NewEstimator(kTestSpec, "model");
  const auto of_checkpoint = Evaluate(*estimator, Evaluation());
  ASSERT_TRUE(of_checkpoint.ok()) << of_checkpoint.status();
  ASSERT_TRUE(estimator->Export("saved").ok());
  ASSERT_TRUE(Train("model", Training()).ok());
  estimator->set_checkpoint("saved");
  const auto of_export = Evaluate(*estimator, Evaluation());
  ASSERT_TRUE(of_export.ok()) << of_export.status();
  EXPECT_EQ(of_export->metrics, of_checkpoint->metrics);
  EXPECT_EQ(of_export->checkpoint, "saved");
  EXPECT_EQ(of_export->step, 10);
  const auto predicted = Predict(*estimator);
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  EXPECT_EQ(predicted->checkpoint, "saved");
  EXPECT_THAT(std::string(score::LoadModelDir(*files_, "saved").status().message()),
              HasSubstr("the export as --checkpoint"));
}

// The loss decreases: if a higher loss is better, the first evaluation is the best.
TEST_F(CheckpointChoiceTest, TheBestCheckpointStays) {
  ASSERT_TRUE(TrainAndKeep({"loss", true}, 50).ok());
  const auto highest =
      std::max_element(losses_.begin(), losses_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  ASSERT_EQ(highest->first, 10);
  const auto best = checkpoint::ReadBest(*files_, "model");
  ASSERT_TRUE(best.ok() && *best) << best.status();
  EXPECT_EQ((*best)->step, 10);
  EXPECT_EQ((*best)->metric, "loss");
  EXPECT_EQ((*best)->value, losses_[10]);
  EXPECT_EQ(*checkpoint::FindBest(*files_, "model"), "model/model.ckpt-10");
  EXPECT_THAT(Checkpoints(),
              testing::ElementsAre("model.ckpt-10", "model.ckpt-40", "model.ckpt-50"));
  // After a later run in another process this checkpoint is still the best, and still exists.
  ASSERT_TRUE(TrainAndKeep({"loss", true}, 57).ok());
  EXPECT_EQ(*checkpoint::FindBest(*files_, "model"), "model/model.ckpt-10");
  // With another metric a later checkpoint is the best.
  ASSERT_TRUE(TrainAndKeep({"loss", false}, 57).ok());
  EXPECT_EQ(*checkpoint::FindBest(*files_, "model"), "model/model.ckpt-57");
}

TEST_F(CheckpointChoiceTest, WithoutEvaluationsThereIsNoBest) {
  ASSERT_TRUE(Train("model", Training()).ok());
  const absl::Status none = checkpoint::FindBest(*files_, "model").status();
  EXPECT_TRUE(absl::IsNotFound(none)) << none;
  EXPECT_THAT(std::string(none.message()), HasSubstr("--eval"));
  Write("model/best_checkpoint", "{\"checkpoint\": \"../m/model.ckpt-1\", \"step\": 1}");
  EXPECT_TRUE(absl::IsDataLoss(checkpoint::FindBest(*files_, "model").status()));
}

TEST_F(CheckpointChoiceTest, AReadOnlyFolderCanBeEvaluated) {
  ASSERT_TRUE(Train("model", Training()).ok());
  for (const auto operation :
       {io::FileOperation::kMakeFolders, io::FileOperation::kCreate, io::FileOperation::kWrite}) {
    io::FaultFileSystem read_only(*files_);
    const auto spec = model::ParseModelSpec(*files_, kTestSpec, "spec.yaml");
    const auto estimator = *Estimator::Create(read_only, clock_, *spec, Config("model"));
    EvalSpec eval = Evaluation();
    for (const bool needed : {false, true}) {
      eval.needs_events = needed;
      const bool is_write = operation == io::FileOperation::kWrite;
      read_only.FailNth(operation, 1,
                        is_write ? absl::ResourceExhaustedError("no space left on device")
                                 : absl::PermissionDeniedError("read-only file system"));
      const auto result = Evaluate(*estimator, eval);
      EXPECT_EQ(result.ok(), !needed) << result.status();
      if (!result.ok()) {
        EXPECT_THAT(std::string(result.status().message()),
                    HasSubstr("the same command continues"));
        continue;
      }
      EXPECT_EQ(absl::IsResourceExhausted(result->events), is_write) << result->events;
      EXPECT_EQ(absl::IsPermissionDenied(result->events), !is_write) << result->events;
    }
  }
}

}  // namespace
}  // namespace muster::train
