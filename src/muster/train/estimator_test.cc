#include "muster/train/estimator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "muster/score/inference.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

class EstimatorTest : public TrainingTest {};

TEST_F(EstimatorTest, LearnsFromTheData) {
  const auto result = Train("model", Training());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->step, 3 * 19);
  EXPECT_EQ(result->examples, 900u);
  EvalSpec eval;
  eval.input.source.patterns = {"train.csv"};
  Progress progress(ProgressStyle::kNone, 2, clock_);
  const auto scores = NewEstimator(kTestSpec, "model")->Evaluate(eval, progress);
  ASSERT_TRUE(scores.ok()) << scores.status();
  std::map<std::string, double> metrics(scores->metrics.begin(), scores->metrics.end());
  EXPECT_GT(metrics["auc"], 0.85);
  EXPECT_EQ(metrics["global_step"], 57);
  EXPECT_EQ(scores->examples, 300u);
  const auto events = files_->List("model/eval");
  ASSERT_TRUE(events.ok());
  EXPECT_THAT(events->at(0), HasSubstr("tfevents"));
}

TEST_F(EstimatorTest, ResumesToTheSameBytesFromAnyStep) {
  ASSERT_TRUE(Train("whole", Training()).ok());
  const auto whole = Weights("whole");
  for (const int cut : {1, 7, 19, 20, 38, 56}) {
    const std::string folder = StrCat("cut", cut);
    TrainSpec first = Training();
    first.max_steps = cut;
    const auto stopped = Train(folder, first);
    ASSERT_TRUE(stopped.ok()) << stopped.status();
    EXPECT_EQ(stopped->step, cut);
    const auto resumed = Train(folder, Training());
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    EXPECT_EQ(resumed->first_step, cut);
    EXPECT_EQ(Weights(folder), whole) << "cut at step " << cut;
  }
}

TEST_F(EstimatorTest, ContinuesFromAnotherFolderToTheSameBytes) {
  ASSERT_TRUE(Train("whole", Training()).ok());
  TrainSpec first = Training();
  first.max_steps = 25;
  ASSERT_TRUE(Train("first", first).ok());
  Progress progress(ProgressStyle::kNone, 2, clock_);
  const auto go_on = [&](const std::string& folder, std::string_view spec, const char* origin) {
    const auto estimator = NewEstimator(spec, folder);
    estimator->set_origin(origin);
    return estimator->Train(Training(), progress, never_);
  };
  for (const char* const origin : {"first", "first/model.ckpt-25"}) {
    const std::string folder = StrCat("from ", io::Basename(origin));
    const auto result = go_on(folder, kTestSpec, origin);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->first_step, 25);
    EXPECT_EQ(Weights(folder), Weights("whole"));
    EXPECT_TRUE(files_->Stat(folder + "/model.ckpt-25.index").ok()) << "its own first checkpoint";
  }
  // Another learning rate is another training of the same weights and slots.
  std::string other(kTestSpec);
  other.replace(other.find("learning_rate: 0.05"), 19, "learning_rate: 0.01");
  const auto result = go_on("slower", other, "first");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->examples, 900u - 25 * 16 + 4);  // each epoch ends with a batch of 12
  EXPECT_NE(Weights("slower"), Weights("whole"));
  other.replace(other.find("dimension: 4"), 12, "dimension: 8");
  const absl::Status refused = go_on("wider", other, "first").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(ToStd(refused.message()),
              testing::AllOf(HasSubstr("continuing from first"), HasSubstr("embedding_weights")));
  EXPECT_TRUE(absl::IsNotFound(go_on("none", kTestSpec, "nowhere").status()));
}

TEST_F(EstimatorTest, SameThreadsSameBytes) {
  for (const int threads : {2, 3}) {
    ASSERT_TRUE(Train(StrCat("a", threads), Training(), kTestSpec, threads).ok());
    ASSERT_TRUE(Train(StrCat("b", threads), Training(), kTestSpec, threads).ok());
    EXPECT_EQ(Weights(StrCat("a", threads)), Weights(StrCat("b", threads)));
  }
}

TEST_F(EstimatorTest, StopsOnRequestAndSaves) {
  const std::atomic<bool> stop{true};
  Progress progress(ProgressStyle::kNone, 2, clock_);
  const auto result = NewEstimator(kTestSpec, "model")->Train(Training(), progress, stop);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->interrupted);
  EXPECT_EQ(result->step, 0);
  EXPECT_TRUE(checkpoint::Latest(*files_, "model").ok());
}

TEST_F(EstimatorTest, ATrainingWithNothingToDoSaysSo) {
  const auto first = Train("model", Training());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(first->nothing_left);
  const auto again = Train("model", Training());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->nothing_left);
  EXPECT_EQ(again->examples, 0u);
  EXPECT_EQ(again->step, 57);
  TrainSpec steps = Training();
  steps.max_steps = 20;
  const auto fewer = Train("model", steps);
  ASSERT_TRUE(fewer.ok()) << fewer.status();
  EXPECT_TRUE(fewer->nothing_left);
  TrainSpec more = Training();
  more.input.reader.epochs = 4;
  EXPECT_FALSE(Train("model", more)->nothing_left);
}

TEST_F(EstimatorTest, RefusesAnotherSpecAndOtherData) {
  TrainSpec first = Training();
  first.max_steps = 5;
  ASSERT_TRUE(Train("model", first).ok());
  std::string other(kTestSpec);
  other.replace(other.find("dimension: 4"), 12, "dimension: 8");
  const auto spec_differs = Train("model", Training(), other);
  EXPECT_TRUE(absl::IsFailedPrecondition(spec_differs.status()));
  EXPECT_THAT(std::string(spec_differs.status().message()),
              testing::AllOf(HasSubstr("another spec"), HasSubstr("dimension: 8"),
                             HasSubstr("another --model-dir and --warm-start model")));
  Write("other.csv", Csv(100));
  const auto data_differs = Train("model", Training("other.csv"));
  EXPECT_TRUE(absl::IsFailedPrecondition(data_differs.status())) << data_differs.status();
  EXPECT_THAT(std::string(data_differs.status().message()), HasSubstr("--fresh-data"));
  TrainSpec fresh = Training("other.csv");
  fresh.fresh_data = true;
  const auto result = Train("model", fresh);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->examples, 300u);
}

TEST_F(EstimatorTest, AnUntrainedModelIsReplacedByACorrectedOne) {
  Write("gap.csv", "id,x,color,y\n1,0.5,red,1\n2,,blue,0\n");
  ASSERT_TRUE(files_->MakeFolders("model").ok());
  EXPECT_THAT(ToStd(Train("model", Training("gap.csv")).status().message()),
              HasSubstr("gap.csv:3"));
  ASSERT_TRUE(files_->Stat("model/model.ckpt-0.index").ok())
      << "the training has written no checkpoint";
  std::string corrected(kTestSpec);
  corrected.replace(corrected.find("x: float"), 8, "x: {type: float, default: 0}");
  corrected.replace(corrected.find("dimension: 4"), 12, "dimension: 8");
  for (const std::string folder : {"model", "new"}) {
    const auto result = Train(folder, Training("gap.csv"), corrected);
    ASSERT_TRUE(result.ok()) << result.status();
  }
  EXPECT_TRUE(Weights("model") == Weights("new"));
}

TEST_F(EstimatorTest, ATrainingThatFailsBeforeItsFirstStepLeavesNoFolder) {
  Write("gap.csv", "id,x,color,y\n1,,red,1\n");
  ASSERT_FALSE(Train("models/new", Training("gap.csv")).ok());
  EXPECT_TRUE(absl::IsNotFound(files_->Stat("models/new").status()));
  TrainSpec spec = Training();
  spec.max_steps = 5;
  ASSERT_TRUE(Train("model", spec).ok());
  spec = Training("gap.csv");
  spec.fresh_data = true;
  ASSERT_FALSE(Train("model", spec).ok());
  EXPECT_TRUE(files_->Stat("model/model.ckpt-5.index").ok());
}

TEST_F(EstimatorTest, TheFolderHasTheFormatOfItsNewestTraining) {
  TrainSpec spec = Training();
  for (const char* const mark : {"gone", "none"}) {
    spec.max_steps = spec.max_steps.value_or(0) + 5;
    const std::string model = StrCat(kTestSpec, "\nformat: {missing: [", mark, "]}\n");
    ASSERT_TRUE(Train("model", spec, model).ok());
    const auto saved = model::LoadSavedSpec(*files_, "model");
    ASSERT_TRUE(saved.ok()) << saved.status();
    EXPECT_THAT(saved->format.missing, testing::Optional(testing::ElementsAre(mark)));
  }
}

TEST_F(EstimatorTest, AKeyMayBeAddedToATrainedModel) {
  std::string keyless(kTestSpec);
  keyless.replace(keyless.find("id: int, "), 9, "");
  keyless.replace(keyless.find("key: id"), 7, "");
  TrainSpec spec = Training();
  spec.max_steps = 5;
  ASSERT_TRUE(Train("model", spec, keyless).ok());
  spec.max_steps = 7;
  const auto result = Train("model", spec, StrCat(kTestSpec, "metrics: {group: id}\n"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->first_step, 5);
  const auto saved = model::LoadSavedSpec(*files_, "model");
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->features.key, "id");
  EXPECT_EQ(saved->metrics.group, "id");
  spec.max_steps = 9;
  ASSERT_TRUE(Train("model", spec, keyless).ok()) << "and be left out again";
}

TEST_F(EstimatorTest, NamesABadLabelOrSkipsIt) {
  Write("bad.csv", "id,x,color,y\n1,0.5,red,1\n2,0.5,red,7\n3,0.5,blue,0\n");
  const auto bad = Train("model", Training("bad.csv"));
  EXPECT_TRUE(absl::IsInvalidArgument(bad.status()));
  EXPECT_THAT(std::string(bad.status().message()),
              testing::AllOf(HasSubstr("bad.csv:3"), HasSubstr("label 'y'"), HasSubstr("7")));
  TrainSpec lenient = Training("bad.csv");
  lenient.input.reader.max_bad_records = 10;
  lenient.input.reader.epochs = 1;
  const auto result = Train("model2", lenient);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->examples, 2u);
  EXPECT_EQ(result->bad_records, 1u);
}

TEST_F(EstimatorTest, NamesTheStepOfANanLoss) {
  std::string wild(kTestSpec);
  wild.replace(wild.find("learning_rate: 0.05"), 19, "learning_rate: 1e30");
  const auto result = Train("model", Training(), wild);
  EXPECT_TRUE(absl::IsFailedPrecondition(result.status())) << result.status();
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("at step "));
}

TEST_F(EstimatorTest, PredictsInOrderWithKeysAndWithoutLabels) {
  ASSERT_TRUE(Train("model", Training()).ok());
  Write("rows.csv", "color,id,x\nred,70,3\nblue,5,-3\ngreen,6,0\n");
  InputSpec input;
  input.source.patterns = {"rows.csv"};
  input.reader.batch_size = 2;
  input.with_labels = false;
  input.with_keys = true;
  std::vector<std::string> keys;
  std::vector<float> logits;
  Progress progress(ProgressStyle::kNone, 2, clock_);
  const auto count = NewEstimator(kTestSpec, "model")
                         ->Predict(
                             input,
                             [&](const InputBatch& batch, const engine::Predictions& predictions) {
                               keys.insert(keys.end(), batch.keys.begin(), batch.keys.end());
                               const auto& values = predictions.Find("logits")->floats;
                               logits.insert(logits.end(), values.begin(), values.end());
                               return absl::OkStatus();
                             },
                             progress);
  ASSERT_TRUE(count.ok()) << count.status();
  EXPECT_THAT(keys, testing::ElementsAre("70", "5", "6"));
  ASSERT_EQ(logits.size(), 3u);
  EXPECT_GT(logits[0], logits[2]);
  EXPECT_GT(logits[2], logits[1]);
}

TEST_F(EstimatorTest, PredictsTheSameFromJsonLines) {
  ASSERT_TRUE(Train("model", Training()).ok());
  Write("rows.csv", "color,id,x\nred,70,3\nblue,5,-3.25\n");
  Write("rows.jsonl",
        "{\"id\":70,\"x\":3,\"color\":\"red\"}\n{\"color\":\"blue\",\"x\":-3.25,\"id\":5}\n");
  std::map<std::string, std::vector<float>> logits;
  for (const std::string file : {"rows.csv", "rows.jsonl"}) {
    InputSpec input;
    input.source.patterns = {file};
    input.with_labels = false;
    Progress progress(ProgressStyle::kNone, 2, clock_);
    const auto take = [&](const InputBatch&, const engine::Predictions& predictions) {
      const auto& values = predictions.Find("logits")->floats;
      logits[file].insert(logits[file].end(), values.begin(), values.end());
      return absl::OkStatus();
    };
    const auto count = NewEstimator(kTestSpec, "model")->Predict(input, take, progress);
    ASSERT_TRUE(count.ok()) << count.status();
  }
  EXPECT_EQ(logits["rows.csv"].size(), 2u);
  EXPECT_EQ(logits["rows.csv"], logits["rows.jsonl"]);
}

TEST_F(EstimatorTest, EvaluatesPredictsAndExportsAGivenCheckpoint) {
  TrainSpec spec = Training();
  spec.max_steps = 10;
  ASSERT_TRUE(Train("model", spec).ok());
  const auto early = NewEstimator(kTestSpec, "model");
  Progress progress(ProgressStyle::kNone, 2, clock_);
  const auto at_10 = early->Evaluate(Evaluation(), progress);
  ASSERT_TRUE(at_10.ok()) << at_10.status();
  ASSERT_TRUE(early->Export("early").ok());
  ASSERT_TRUE(Train("model", Training()).ok());

  const auto estimator = NewEstimator(kTestSpec, "model");
  EXPECT_EQ(estimator->Evaluate(Evaluation(), progress)->step, 57);
  for (const char* prefix : {"model/model.ckpt-10", "model/model.ckpt-10.index"}) {
    estimator->set_checkpoint(prefix);
    const auto again = estimator->Evaluate(Evaluation(), progress);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->step, 10);
    EXPECT_EQ(again->checkpoint, "model/model.ckpt-10");
    EXPECT_EQ(again->metrics, at_10->metrics);
  }
  ASSERT_TRUE(estimator->Export("again").ok());
  const std::string data = "/variables/variables.data-00000-of-00001";
  EXPECT_EQ(*io::ReadFile(*files_, "again" + data), *io::ReadFile(*files_, "early" + data));
  estimator->set_checkpoint("model/model.ckpt-11");
  const absl::Status missing = estimator->Evaluate(Evaluation(), progress).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr("no checkpoint model/model.ckpt-11"));
}

TEST_F(EstimatorTest, WithoutACheckpointEachUseSaysWhatToDo) {
  const auto estimator = NewEstimator(kTestSpec, "model");
  Progress progress(ProgressStyle::kNone, 2, clock_);
  const auto take = [](const InputBatch&, const engine::Predictions&) { return absl::OkStatus(); };
  const PredictSpec predict{.input = Evaluation().input};
  for (const absl::Status& status :
       {estimator->Evaluate(Evaluation(), progress).status(),
        estimator->Predict(predict, take, progress).status(), estimator->Export("saved")}) {
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("no checkpoint in model")) << status;
  }
  EXPECT_FALSE(files_->Stat("saved").ok());
}

TEST_F(EstimatorTest, AnExportIntoAnExistingFolderIsRefused) {
  ASSERT_TRUE(Train("model", Training()).ok());
  ASSERT_TRUE(files_->MakeFolders("saved").ok());
  const absl::Status status = NewEstimator(kTestSpec, "model")->Export("saved");
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("saved: it exists already"));
}

TEST_F(EstimatorTest, WithoutAModelSaysWhatToDo) {
  const auto spec = score::LoadModelDir(*files_, "nowhere");
  EXPECT_THAT(std::string(spec.status().message()), HasSubstr("muster train"));
}

}  // namespace
}  // namespace muster::train
