#include "muster/score/scorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "muster/score/score_test_support.h"

namespace muster::score {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

constexpr std::string_view kLinear = R"(
inputs: {id: int, x: float, color: string, y: int}
label: y
key: id
columns: {x: {numeric: x}, color: {hash: color, buckets: 10}}
model: {type: linear, linear: {columns: [x, color], optimizer: {ftrl: {learning_rate: 0.1}}}}
train: {batch_size: 16, epochs: 3, seed: 5}
)";

constexpr std::string_view kDnn = R"(
inputs: {id: int, x: float, color: string, y: int}
label: y
columns: {x: {numeric: x}, color: {vocabulary: color, words: [red, green]}, c: {indicator: color}}
model:
  type: dnn
  dnn: {columns: [x, c], hidden_units: [8, 4], optimizer: {adam: {learning_rate: 0.01}}}
train: {batch_size: 16, epochs: 3, seed: 5}
)";

// The wide and the deep part have separate tables over the same keys.
constexpr std::string_view kKeys = R"(
inputs: {id: int, x: float, color: string, y: int}
label: y
columns:
  x: {numeric: x}
  user: {keys: id}
  color: {keys: color}
  user_embedding: {embedding: user, dimension: 4}
model:
  type: wide_deep
  linear: {columns: [user, color], optimizer: {ftrl: {learning_rate: 0.1}}}
  dnn:
    {columns: [x, user_embedding], hidden_units: [8], optimizer: {adagrad: {learning_rate: 0.05}}}
train: {batch_size: 16, epochs: 3, seed: 5}
)";

struct ModelFile {
  std::string name;
  std::string_view yaml;
  friend std::ostream& operator<<(std::ostream& out, const ModelFile& file) {
    return out << file.name;
  }
};

class ScorerTest : public ScoreTest, public testing::WithParamInterface<ModelFile> {
 protected:
  void TrainParam() {
    ASSERT_TRUE(Train("model", Training(), GetParam().yaml).ok());
    // Keys and words that training has seen, and others that it has not.
    Write("rows.csv", Csv(400));
  }
};

INSTANTIATE_TEST_SUITE_P(Models, ScorerTest,
                         testing::Values(ModelFile{"Linear", kLinear}, ModelFile{"Dnn", kDnn},
                                         ModelFile{"WideAndDeep", train::kTestSpec},
                                         ModelFile{"TablesThatGrow", kKeys}),
                         [](const auto& test) { return test.param.name; });

TEST_P(ScorerTest, ThePredictionsAreTheEstimatorsToTheBit) {
  TrainParam();
  for (const int threads : {1, 2}) {
    const auto expected = EstimatorScores(GetParam().yaml, "rows.csv", threads);
    ASSERT_THAT(expected, SizeIs(25));
    const auto scorer =
        Scorer::Open(*files_, {.weights = {.model_dir = "model"}, .threads = threads});
    ASSERT_TRUE(scorer.ok()) << scorer.status();
    EXPECT_EQ((*scorer)->restored().prefix, "model/model.ckpt-57");
    EXPECT_EQ((*scorer)->restored().step, 57);
    EXPECT_EQ(AllScores(**scorer, Batches(**scorer, "rows.csv")), expected) << threads;
  }
}

TEST_P(ScorerTest, FourThreadsAtOnceGetTheBitsThatOneThreadGets) {
  TrainParam();
  const auto expected = EstimatorScores(GetParam().yaml, "rows.csv", /*threads=*/1);
  for (const int lanes : {1, 2, 4}) {
    const auto scorer = Scorer::Open(*files_, {.weights = {.model_dir = "model"}, .lanes = lanes});
    ASSERT_TRUE(scorer.ok()) << scorer.status();
    const auto batches = Batches(**scorer, "rows.csv");
    EXPECT_THAT(ScoresByThreads(**scorer, batches, /*threads=*/4), testing::Each(expected))
        << lanes << " lanes";
  }
}

class ScorerOfWeightsTest : public ScoreTest {
 protected:
  void TrainTo(int64_t step) {
    train::TrainSpec spec = Training();
    spec.max_steps = step;
    ASSERT_TRUE(Train("model", spec).ok());
  }
  void BreakTheNewest(const std::string& data) {
    std::string bytes = *io::ReadFile(*files_, data);
    bytes[2] = static_cast<char>(bytes[2] ^ 1);
    Write(data, bytes);
  }
  absl::Status OpenError(const WeightsSource& weights) {
    return Scorer::Open(*files_, {.weights = weights}).status();
  }
  // Returns the error with which a prediction by the Estimator ends.
  absl::Status PredictError(const WeightsSource& weights) {
    const auto estimator = NewEstimator(train::kTestSpec, weights.model_dir);
    estimator->set_checkpoint(weights.checkpoint);
    estimator->set_fall_back(weights.fall_back);
    train::Progress progress(train::ProgressStyle::kNone, 2, clock_);
    const auto take = [](const train::InputBatch&, const engine::Predictions&) {
      return absl::OkStatus();
    };
    return estimator->Predict(Evaluation().input, take, progress).status();
  }
};

TEST_F(ScorerOfWeightsTest, AMissingOrBrokenCheckpointIsReportedAsByPredict) {
  EXPECT_TRUE(absl::IsNotFound(OpenError({.model_dir = "nowhere"})));
  EXPECT_THAT(ToStd(OpenError({.model_dir = "nowhere"}).message()), HasSubstr("no model folder"));
  TrainTo(10);
  TrainTo(20);
  BreakTheNewest("model/model.ckpt-20.data-00000-of-00001");
  const WeightsSource newest = {.model_dir = "model"};
  const WeightsSource named = {.model_dir = "model", .checkpoint = "model/model.ckpt-20"};
  const WeightsSource missing = {.model_dir = "model", .checkpoint = "model/model.ckpt-11"};
  EXPECT_TRUE(absl::IsDataLoss(OpenError(newest)));
  EXPECT_TRUE(absl::IsDataLoss(OpenError(named)));
  EXPECT_TRUE(absl::IsNotFound(OpenError(missing)));
  for (const WeightsSource& weights : {newest, named, missing}) {
    EXPECT_EQ(OpenError(weights), PredictError(weights));
  }
  ASSERT_TRUE(files_->MakeFolders("untrained").ok());
  Write("untrained/model.yaml", *io::ReadFile(*files_, "model/model.yaml"));
  EXPECT_TRUE(absl::IsNotFound(OpenError({.model_dir = "untrained"})));
  EXPECT_EQ(OpenError({.model_dir = "untrained"}), PredictError({.model_dir = "untrained"}));
}

TEST_F(ScorerOfWeightsTest, AnOlderCheckpointIsLoadedOnlyIfFallBackIsSet) {
  TrainTo(10);
  TrainTo(20);
  BreakTheNewest("model/model.ckpt-20.data-00000-of-00001");
  const auto scorer = Scorer::Open(*files_, {.weights = {.model_dir = "model", .fall_back = true}});
  ASSERT_TRUE(scorer.ok()) << scorer.status();
  EXPECT_EQ((*scorer)->restored().step, 10);
  EXPECT_THAT((*scorer)->restored().note, HasSubstr("passed over for model/model.ckpt-10"));
}

TEST_F(ScorerOfWeightsTest, ANamedCheckpointOrExportIsLoaded) {
  TrainTo(10);
  ASSERT_TRUE(NewEstimator(train::kTestSpec, "model")->Export("saved").ok());
  const auto expected = EstimatorScores(train::kTestSpec, "train.csv", /*threads=*/1);
  TrainTo(20);
  for (const std::string checkpoint : {"model/model.ckpt-10", "saved"}) {
    const auto scorer =
        Scorer::Open(*files_, {.weights = {.model_dir = "model", .checkpoint = checkpoint}});
    ASSERT_TRUE(scorer.ok()) << scorer.status();
    EXPECT_EQ((*scorer)->restored().step, 10);
    EXPECT_EQ((*scorer)->restored().prefix, checkpoint);
    EXPECT_EQ(AllScores(**scorer, Batches(**scorer, "train.csv")), expected) << checkpoint;
  }
}

TEST_F(ScorerOfWeightsTest, NoFileIsNeededOnceItIsOpen) {
  TrainTo(10);
  const auto expected = EstimatorScores(train::kTestSpec, "train.csv", /*threads=*/1);
  const auto scorer = Scorer::Open(*files_, {.weights = {.model_dir = "model"}});
  ASSERT_TRUE(scorer.ok()) << scorer.status();
  ASSERT_TRUE(files_->RemoveAll("model").ok());
  EXPECT_EQ(AllScores(**scorer, Batches(**scorer, "train.csv")), expected);
}

// The metrics of an evaluation are computed from the scores of batches with labels.
TEST_F(ScorerOfWeightsTest, BatchesWithLabelsAreEvaluatedAsByTheEstimator) {
  TrainTo(10);
  train::Progress progress(train::ProgressStyle::kNone, 2, clock_);
  const auto expected = NewEstimator(train::kTestSpec, "model")->Evaluate(Evaluation(), progress);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto scorer = Scorer::Open(*files_, {.weights = {.model_dir = "model"}});
  ASSERT_TRUE(scorer.ok()) << scorer.status();
  const auto metrics = model::NewMetrics((*scorer)->model(), {});
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  Scores scores;
  const int batch_size = Evaluation().input.reader.batch_size;
  for (const auto& batch : Batches(**scorer, "train.csv", /*with_labels=*/true, batch_size)) {
    ASSERT_TRUE((*scorer)->Score(batch, &scores).ok());
    (*metrics)->Add(scores.forward, batch);
  }
  ASSERT_TRUE((*metrics)->Finish().ok());
  auto values = (*metrics)->Values();
  values.emplace_back("global_step", 10);
  EXPECT_EQ(values, expected->metrics);
}

TEST_F(ScorerOfWeightsTest, ABatchThatDoesNotFitIsRefusedAndTheNextOneIsScored) {
  TrainTo(10);
  const auto scorer = Scorer::Open(*files_, {.weights = {.model_dir = "model"}, .lanes = 2});
  ASSERT_TRUE(scorer.ok()) << scorer.status();
  const auto batches = Batches(**scorer, "train.csv");
  const auto expected = AllScores(**scorer, batches);
  features::FeatureBatch wide = batches[0];
  wide.dense[0].width = 2;
  Scores scores;
  for (int i = 0; i < 3; ++i) {
    const absl::Status refused = (*scorer)->Score(wide, &scores);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  }
  EXPECT_TRUE(absl::IsInvalidArgument((*scorer)->Score({}, &scores)));
  EXPECT_EQ(AllScores(**scorer, batches), expected);
}

TEST_F(ScorerOfWeightsTest, LanesAndThreadsMustBeAtLeastOne) {
  TrainTo(10);
  for (const auto& [lanes, threads] : {std::pair(0, 1), std::pair(1, 0)}) {
    const absl::Status status =
        Scorer::Open(*files_,
                     {.weights = {.model_dir = "model"}, .lanes = lanes, .threads = threads})
            .status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(ToStd(status.message()), AllOf(HasSubstr("at least one lane"), HasSubstr("0")));
  }
}

}  // namespace
}  // namespace muster::score
