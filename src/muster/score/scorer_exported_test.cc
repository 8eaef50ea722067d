// Scoring with an exported Keras model, which the fake TensorFlow computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "muster/engine/tensorflow/test_model.h"
#include "muster/formats/bundle.h"
#include "muster/score/score_test_support.h"

namespace muster::score {
namespace {

using testing::Each;
using testing::ElementsAre;

// A model folder in which a prediction is the table's row of the id.
class ScorerOfExportedModelTest : public ScoreTest {
 protected:
  ScorerOfExportedModelTest() : local_(io::NewLocalFileSystem()) {
    using engine::tensorflow::Replaced;
    EXPECT_TRUE(local_->MakeFolders(folder_.File("exported/step")).ok());
    folder_.Write("exported/model.json",
                  Replaced(engine::tensorflow::TestManifest(),
                           R"({"input_x": "x:0"}, "outputs": {"output_p": "prediction:0"})",
                           R"({"var_001": "table:0", "ids_0": "ids_0:0"},
                              "outputs": {"output_p": "table_gradient:0"})"));
    folder_.Write("exported/step/saved_model.pb", engine::tensorflow::TestGraph());
    WriteCheckpoint(folder_.File("model.ckpt-7"));
  }

  // Row i of the table is 2 i, 2 i + 1.
  void WriteCheckpoint(const std::string& prefix) {
    auto writer = formats::BundleWriter::Create(*local_, prefix);
    ASSERT_TRUE(writer.ok()) << writer.status();
    const auto add = [&](std::string_view name, std::vector<int64_t> shape) {
      std::vector<float> values(static_cast<size_t>(*formats::ElementCount(shape)));
      std::iota(values.begin(), values.end(), 0.0f);
      const std::string_view bytes(reinterpret_cast<const char*>(values.data()),
                                   values.size() * sizeof(float));
      ASSERT_TRUE((*writer)->Add(name, formats::DataType::kFloat, shape, bytes).ok());
    };
    add("kernel", {2, 2});
    add("table", {5, 2});
    add("mean", {2});
    const int64_t step = 7;
    const std::string_view bytes(reinterpret_cast<const char*>(&step), sizeof step);
    ASSERT_TRUE((*writer)->Add("global_step", formats::DataType::kInt64, {}, bytes).ok());
    ASSERT_TRUE((*writer)->Finish().ok());
  }

  static features::FeatureBatch GetBatch(const std::vector<int64_t>& ids) {
    features::FeatureBatch batch = engine::tensorflow::TestBatch(ids);
    batch.raw.pop_back();  // the label
    return batch;
  }

  std::vector<std::string> EstimatorPredictions(std::vector<features::FeatureBatch> batches) {
    std::vector<std::string> all;
    train::RunConfig config = Config(folder_.path());
    config.tensorflow = MUSTER_FAKE_TENSORFLOW;
    const auto estimator = train::Estimator::Create(
        *local_, clock_, LoadModelDir(*local_, folder_.path()).value(), config);
    EXPECT_TRUE(estimator.ok()) << estimator.status();
    train::Progress progress(train::ProgressStyle::kNone, 2, clock_);
    const auto take = [&](const train::InputBatch&, const engine::Predictions& predictions) {
      all.push_back(Describe(predictions));
      return absl::OkStatus();
    };
    const auto result =
        (*estimator)
            ->Predict(train::PredictSpec{.input_fn = train::BatchesInput(std::move(batches))}, take,
                      progress);
    EXPECT_TRUE(result.ok()) << result.status();
    return all;
  }

  const engine::tensorflow::ModelFolder folder_;
  const std::unique_ptr<io::FileSystem> local_;
};

TEST_F(ScorerOfExportedModelTest, FourThreadsGetTheBytesOfTheEstimator) {
  std::vector<features::FeatureBatch> batches;
  for (int64_t i = 0; i < 8; ++i) batches.push_back(GetBatch({i % 5, i % 3}));
  const auto expected = EstimatorPredictions(batches);
  const auto scorer = Scorer::Open(
      *local_,
      {.weights = {.model_dir = folder_.path()}, .lanes = 2, .tensorflow = MUSTER_FAKE_TENSORFLOW});
  ASSERT_TRUE(scorer.ok()) << scorer.status();
  EXPECT_EQ((*scorer)->restored().step, 7);
  EXPECT_THAT(ScoresByThreads(**scorer, batches, /*threads=*/4), Each(expected));
  Scores scores;
  ASSERT_TRUE((*scorer)->Score(GetBatch({3, 1}), &scores).ok());
  EXPECT_THAT(scores.forward.logits, ElementsAre(6, 7, 2, 3));
}

// TensorFlow's process ends with the thread that started it, which must be the lane's thread, not a
// caller's. The third run of any process fails.
TEST_F(ScorerOfExportedModelTest, OneProcessServesCallersWhoseThreadsEnd) {
  folder_.Write("exported/step/saved_model.pb",
                engine::tensorflow::TestGraph() + std::string("fault fail 3 none\n"));
  const auto scorer = Scorer::Open(
      *local_, {.weights = {.model_dir = folder_.path()}, .tensorflow = MUSTER_FAKE_TENSORFLOW});
  ASSERT_TRUE(scorer.ok()) << scorer.status();
  std::vector<absl::StatusCode> codes;
  for (int caller = 0; caller < 4; ++caller) {
    std::jthread([&] {
      Scores scores;
      codes.push_back((*scorer)->Score(GetBatch({3, 1}), &scores).code());
    }).join();
  }
  using Code = absl::StatusCode;
  EXPECT_THAT(codes, ElementsAre(Code::kOk, Code::kOk, testing::Ne(Code::kOk), Code::kOk));
}

TEST_F(ScorerOfExportedModelTest, ScoreReportsThatTensorFlowIsMissing) {
  const auto scorer = Scorer::Open(
      *local_, {.weights = {.model_dir = folder_.path()}, .tensorflow = folder_.File("nowhere")});
  ASSERT_TRUE(scorer.ok()) << scorer.status();
  Scores scores;
  const absl::Status status = (*scorer)->Score(GetBatch({3, 1}), &scores);
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
}

}  // namespace
}  // namespace muster::score
