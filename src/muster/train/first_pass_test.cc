#include "muster/train/first_pass.h"

#include <algorithm>

#include "muster/train/run_training.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

constexpr std::string_view kAuto = R"(
inputs: {id: int, x: float, color: string, y: int}
label: y
key: id
columns: {x: {numeric: x, normalize: auto, impute: mean, missing_flag: true}}
model: {type: dnn, dnn: {columns: [x], hidden_units: [4]}}
train: {batch_size: 16, epochs: 3, seed: 5}
)";

class FirstPassTest : public TrainingTest {
 protected:
  // x is 2, 4 or nothing, in turn: mean 3, deviation 1.
  FirstPassTest() { WriteRows("two.csv", "2", "4"); }

  void WriteRows(const std::string& path, const std::string& low, const std::string& high) {
    std::string csv = "id,x,color,y\n";
    for (int i = 0; i < 300; ++i) {
      csv += StrCat(i, ",", i % 3 == 0 ? low : i % 3 == 1 ? high : "", ",red,", i % 2, "\n");
    }
    Write(path, csv);
  }

  TrainingRequest Request(const std::string& data, std::string_view yaml = kAuto) {
    TrainingRequest request = {.model = *model::ParseModelSpec(*files_, yaml, "spec.yaml"),
                               .run = Config("model"),
                               .train = Training(data)};
    request.train.max_steps = 3;
    request.role.context.stop = &never_;
    return request;
  }
  absl::Status Run(TrainingRequest request) {
    return RunTraining(std::move(request), *files_, clock_, {}).status();
  }
  features::ColumnSpec Saved(const std::string& folder) {
    const auto spec = model::LoadSavedSpec(*files_, folder);
    EXPECT_TRUE(spec.ok()) << spec.status();
    return *spec->features.Find("x");
  }
};

TEST_F(FirstPassTest, TheModelFolderKeepsTheNumbers) {
  ASSERT_TRUE(Run(Request("two.csv")).ok());
  EXPECT_EQ(Saved("model").mean, 3);
  EXPECT_EQ(Saved("model").stddev, 1);
  EXPECT_EQ(Saved("model").imputed, 3);
  EXPECT_FALSE(Saved("model").to_measure);
}

TEST_F(FirstPassTest, ATrainingThatContinuesDoesNotMeasureAgain) {
  ASSERT_TRUE(Run(Request("two.csv")).ok());
  WriteRows("others.csv", "200", "400");
  TrainingRequest more = Request("others.csv");
  more.train.fresh_data = true;
  more.train.max_steps = 6;
  const absl::Status status = Run(more);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Saved("model").mean, 3);
}

TEST_F(FirstPassTest, AWarmStartKeepsTheNumbersOfItsWeights) {
  ASSERT_TRUE(Run(Request("two.csv")).ok());
  WriteRows("others.csv", "200", "400");
  TrainingRequest warm = Request("others.csv");
  warm.run.model_dir = "folder";
  warm.warm_start = "model";
  ASSERT_TRUE(Run(warm).ok());
  EXPECT_EQ(Saved("folder").mean, 3);
  warm.run.model_dir = "prefix";
  warm.warm_start = "model/model.ckpt-3";
  ASSERT_TRUE(Run(warm).ok());
  EXPECT_EQ(Saved("prefix").mean, 3);
  warm.run.model_dir = "cold";
  warm.warm_start = "";
  ASSERT_TRUE(Run(warm).ok());
  EXPECT_EQ(Saved("cold").mean, 300);
}

TEST_F(FirstPassTest, TheNumbersDoNotDependOnTheShareOrTheOrder) {
  model::ModelSpec whole = *model::ParseModelSpec(*files_, kAuto, "spec.yaml");
  model::ModelSpec share = whole;
  TrainSpec training = Training("train.csv");
  Progress progress(ProgressStyle::kNone, 2, clock_);
  ASSERT_TRUE(MeasureColumns(*files_, training.input, progress, never_, &whole).ok());
  training.input.source.shard = {.index = 1, .count = 3, .by = data::ShardBy::kRecord};
  training.input.reader.shuffle = false;
  training.input.reader.epochs = 0;
  ASSERT_TRUE(MeasureColumns(*files_, training.input, progress, never_, &share).ok());
  EXPECT_EQ(whole, share);
  EXPECT_NE(whole.features.Find("x")->mean, 0);
}

TEST_F(FirstPassTest, RowsThatDoNotFitAreLeftOutWithinTheLimit) {
  Write("bad.csv", "id,x,color,y\n1,2,red,0\n2,nan,red,1\n3,oops,red,1\n4,4,red,0\n");
  model::ModelSpec model = *model::ParseModelSpec(*files_, kAuto, "spec.yaml");
  TrainSpec training = Training("bad.csv");
  Progress progress(ProgressStyle::kNone, 2, clock_);
  const absl::Status status = MeasureColumns(*files_, training.input, progress, never_, &model);
  EXPECT_THAT(ToStd(status.message()), HasSubstr("bad.csv:3"));
  training.input.reader.max_bad_records = 2;
  ASSERT_TRUE(MeasureColumns(*files_, training.input, progress, never_, &model).ok());
  EXPECT_EQ(model.features.Find("x")->mean, 3);
}

TEST_F(FirstPassTest, AStreamOrAStopRequestIsAnError) {
  EXPECT_THAT(ToStd(Run(Request("rows.batches")).message()),
              HasSubstr("column 'x' takes numbers from the training data"));
  EXPECT_FALSE(files_->Stat("model").ok()) << "nothing was made";
  const std::atomic<bool> stop = true;
  TrainingRequest request = Request("two.csv");
  request.role.context.stop = &stop;
  EXPECT_TRUE(absl::IsCancelled(Run(request)));
}

TEST_F(FirstPassTest, AnEstimatorDoesNotTrainWithoutTheNumbers) {
  EXPECT_TRUE(absl::IsFailedPrecondition(Train("alone", Training("two.csv"), kAuto).status()));
  EXPECT_FALSE(files_->Stat("alone").ok()) << "the folder was made";
  // An estimator that evaluates copies the numbers from the folder.
  ASSERT_TRUE(Run(Request("two.csv")).ok());
  const auto estimator = NewEstimator(kAuto, "model");
  Progress progress(ProgressStyle::kNone, 2, clock_);
  EvalSpec eval;
  eval.input = Training("two.csv").input;
  eval.input.reader.epochs = 1;
  const auto result = estimator->Evaluate(eval, progress);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->examples, 300);
}

}  // namespace
}  // namespace muster::train
