#include "muster/engine/tensorflow/tensorflow_engine.h"

#include <cmath>
#include <limits>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/engine/tensorflow/test_model.h"

namespace muster::engine::tensorflow {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class KeptGradients final : public GradientSink {
 public:
  explicit KeptGradients(bool with_squares = false, bool with_entries = false)
      : with_squares_(with_squares), with_entries_(with_entries) {}
  bool WantsSquares(int) const override { return with_squares_; }
  bool WantsEntries(int) const override { return with_entries_; }
  void Dense(int variable, std::span<const float> gradient) override { Keep(variable, gradient); }
  void Rows(int variable, std::span<const int32_t> given,
            std::span<const float> gradient) override {
    rows.assign(given.begin(), given.end());
    Keep(variable, gradient);
  }
  void Statistic(int variable, std::span<const float> value) override { Keep(variable, value); }

  std::vector<int> order;
  std::map<int, std::vector<float>> values;
  std::vector<int32_t> rows;

 private:
  void Keep(int variable, std::span<const float> given) {
    order.push_back(variable);
    values[variable].assign(given.begin(), given.end());
  }
  const bool with_squares_, with_entries_;
};

class TensorFlowEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteGraph(TestGraph());
    Open(TestManifest());
  }
  void Open(const std::string& manifest) {
    folder_.Write("model.json", manifest);
    auto model = OpenKerasExport(*files_, folder_.path());
    ASSERT_TRUE(model.ok()) << model.status();
    auto engine = NewTensorFlowEngine(
        *files_, *std::move(model),
        {.library_folder = MUSTER_FAKE_TENSORFLOW, .environment = process::CurrentEnvironment()});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }
  std::vector<VariableView> Weights() {
    return {{kernel_.data(), 2, 2}, {table_.data(), table_rows_, 2}, {mean_.data(), 2, 1}};
  }
  absl::StatusOr<StepResult> Step(const features::FeatureBatch& batch, GradientSink& sink,
                                  const StepContext& context = {.seed = 1, .step = 2}) {
    return engine_->Step(Weights(), batch, context, sink);
  }

  const ModelFolder folder_;
  const std::unique_ptr<io::FileSystem> files_ = io::NewLocalFileSystem();
  std::unique_ptr<TensorFlowEngine> engine_;
  std::vector<float> kernel_ = {1, 2, 3, 4};
  std::vector<float> table_ = {0, 1, 10, 11, 20, 21, 30, 31, 40, 41};
  int64_t table_rows_ = 5;
  std::vector<float> mean_ = {0, 0};
};

TEST_F(TensorFlowEngineTest, ItsVariablesAreTheTrainedOnesAndTheStates) {
  ASSERT_EQ(engine_->variables().size(), 3u);
  EXPECT_EQ(engine_->variables()[1].name, "table");
  EXPECT_EQ(engine_->variables()[1].kind, VariableKind::kTable);
  EXPECT_THAT(engine_->variables()[0].shape, ElementsAre(2, 2));
  EXPECT_EQ(engine_->variables()[2].kind, VariableKind::kState);
  EXPECT_EQ(engine_->variables()[2].momentum, 0);
  ASSERT_EQ(engine_->table_uses().size(), 1u);
  EXPECT_EQ(engine_->table_uses()[0].variable, 1);
  EXPECT_EQ(engine_->logits_dimension(), 2);
}

TEST_F(TensorFlowEngineTest, GradientsOfRowsAreSummedInOrderOfFirstAppearance) {
  for (const bool squares : {false, true}) {
    KeptGradients sink(squares);
    const auto result = Step(TestBatch({3, 1, 3, 4}), sink);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->loss, 10);
    EXPECT_EQ(result->data_loss, 0);
    EXPECT_THAT(sink.order, ElementsAre(2, 1, 0));
    EXPECT_THAT(sink.values[0], ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(sink.rows, ElementsAre(3, 1, 4));
    if (squares) {
      EXPECT_THAT(sink.values[1],
                  ElementsAre(60, 62, 1800, 1922, 10, 11, 100, 121, 40, 41, 1600, 1681));
    } else {
      EXPECT_THAT(sink.values[1], ElementsAre(60, 62, 10, 11, 40, 41));
    }
  }
}

TEST_F(TensorFlowEngineTest, EntriesOfTablesAreCutBeforeTheyAreAddedUp) {
  std::string manifest = TestManifest();
  manifest.replace(manifest.find("\"clip\": null"), 12, "\"clip\": {\"clipvalue\": 10.5}");
  engine_.reset();
  Open(manifest);
  KeptGradients sink(/*with_squares=*/true);
  ASSERT_TRUE(Step(TestBatch({3, 1, 3, 0}), sink).ok());
  EXPECT_THAT(sink.rows, ElementsAre(3, 1, 0));
  EXPECT_THAT(sink.values[1], ElementsAre(21, 21, 220.5, 220.5, 10, 10.5, 100, 110.25, 0, 1, 0, 1));
  EXPECT_THAT(sink.values[0], ElementsAre(1, 2, 3, 4))
      << "gradients of dense variables are not cut here";
  table_ = {0, 1, -10, -11, 20, 21, -30, 31, 40, 41};
  KeptGradients sums;
  ASSERT_TRUE(Step(TestBatch({3, 1, 3, 3}), sums).ok());
  EXPECT_THAT(sums.values[1], ElementsAre(-31.5, 31.5, -10, -10.5));
}

TEST_F(TensorFlowEngineTest, EntriesAreGivenUnsummedOnRequest) {
  KeptGradients sink(/*with_squares=*/false, /*with_entries=*/true);
  ASSERT_TRUE(Step(TestBatch({3, 1, 3, 4}), sink).ok());
  EXPECT_THAT(sink.rows, ElementsAre(3, 1, 3, 4));
  EXPECT_THAT(sink.values[1], ElementsAre(30, 31, 10, 11, 30, 31, 40, 41));
}

TEST_F(TensorFlowEngineTest, GroupsAreTheExportsVariables) {
  auto model = OpenKerasExport(*files_, folder_.path());
  ASSERT_TRUE(model.ok()) << model.status();
  const auto engine = NewTensorFlowEngine(*files_, *std::move(model),
                                          {.library_folder = MUSTER_FAKE_TENSORFLOW,
                                           .environment = process::CurrentEnvironment(),
                                           .groups = {0, 1, 0, 0}});
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_EQ((*engine)->variables()[0].group, 0);
  EXPECT_EQ((*engine)->variables()[1].group, 1);
}

TEST_F(TensorFlowEngineTest, TablesMayBeBlocks) {
  KeptGradients sink;
  table_ = {30, 31, 10, 11};
  table_rows_ = 2;
  features::FeatureBatch batch = TestBatch({3, 1, 3, 3});
  ASSERT_TRUE(engine_->FindIds(&batch).ok());
  ASSERT_EQ(batch.id_lists.size(), 1u);
  EXPECT_THAT(batch.id_lists[0].ids, ElementsAre(3, 1, 3, 3));
  EXPECT_THAT(batch.id_lists[0].offsets, ElementsAre(0, 2, 4));
  for (int32_t& id : batch.id_lists[0].ids) id = id == 3 ? 0 : 1;
  const auto result = Step(batch, sink);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(sink.rows, ElementsAre(0, 1));
  EXPECT_THAT(sink.values[1], ElementsAre(90, 93, 10, 11));
}

TEST_F(TensorFlowEngineTest, BatchesOfDifferentSizes) {
  for (const int ids : {2, 400, 4, 20'000, 2}) {
    KeptGradients sink;
    const auto result = Step(TestBatch(std::vector<int64_t>(ids, 2)), sink);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(sink.values[1], ElementsAre(20.0f * ids, 21.0f * ids));
  }
  EXPECT_EQ(engine_->host()->starts(), 1);
}

TEST_F(TensorFlowEngineTest, SeedsDependOnSeedStepAndReplica) {
  std::set<float> seen;
  for (const StepContext& context :
       {StepContext{.seed = 1, .step = 2}, StepContext{.seed = 1, .step = 3},
        StepContext{.seed = 2, .step = 2}, StepContext{.seed = 1, .step = 2, .replica = 1},
        StepContext{.seed = 1, .step = 2}}) {
    KeptGradients sink;
    ASSERT_TRUE(Step(TestBatch({0, 1}), sink, context).ok());
    EXPECT_GE(sink.values[2][0], 0);
    EXPECT_EQ(sink.values[2][1], 0);
    seen.insert(sink.values[2][0]);
  }
  EXPECT_EQ(seen.size(), 4u);
}

TEST_F(TensorFlowEngineTest, TheDenominatorIsFed) {
  KeptGradients sink;
  EXPECT_EQ(Step(TestBatch({0, 1}), sink, {.denominator = 12}).value().data_loss, 12);
}

TEST_F(TensorFlowEngineTest, AReplicaWithoutRowsGivesZeros) {
  features::FeatureBatch none;
  KeptGradients some, sink;
  ASSERT_TRUE(Step(TestBatch({0, 1}), some, {.denominator = 2}).ok());
  const auto result = Step(none, sink, {.denominator = 2});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->loss, 0);
  EXPECT_EQ(sink.order, some.order) << "ranks would disagree about what to sum";
  EXPECT_EQ(sink.values[0].size(), some.values[0].size());
  for (const auto& [variable, values] : sink.values) EXPECT_THAT(values, Each(0)) << variable;
  EXPECT_THAT(sink.rows, IsEmpty());
  EXPECT_EQ(Step(none, sink).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TensorFlowEngineTest, NanLossComesWithoutAnyGradient) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    kernel_[1] = bad;
    KeptGradients sink;
    const auto result = Step(TestBatch({0, 1}), sink);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_FALSE(std::isfinite(result->loss));
    EXPECT_THAT(sink.order, IsEmpty());
  }
}

TEST_F(TensorFlowEngineTest, Predicts) {
  Forward forward;
  features::FeatureBatch batch = TestBatch({0, 1});
  ASSERT_TRUE(engine_->Predict(Weights(), batch, &forward).ok());
  EXPECT_THAT(forward.logits, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(forward.loss_sum, 1.5);
  ASSERT_EQ(forward.predictions.size(), 1u);
  EXPECT_THAT(forward.predictions[0].shape, ElementsAre(2));
  batch.raw.pop_back();
  ASSERT_TRUE(engine_->Predict(Weights(), batch, &forward).ok());
  EXPECT_EQ(forward.loss_sum, 0);
  KeptGradients sink;
  EXPECT_THAT(Step(batch, sink).status().message(),
              HasSubstr("has 2 columns, but the model has 2"));
}

TEST_F(TensorFlowEngineTest, PredictionsMayReadWholeTables) {
  engine_.reset();
  Open(WholeTableManifest());
  Forward forward;
  ASSERT_TRUE(engine_->Predict(Weights(), TestBatch({0, 1}), &forward).ok());
  EXPECT_EQ(forward.loss_sum, 205);
  table_[0] = 1;
  ASSERT_TRUE(engine_->Predict(Weights(), TestBatch({0, 1}), &forward).ok());
  EXPECT_EQ(forward.loss_sum, 206) << "the sum of the weights that were given";
  KeptGradients sink;
  ASSERT_TRUE(Step(TestBatch({3, 1, 3, 4}), sink).ok());
  EXPECT_THAT(sink.rows, ElementsAre(3, 1, 4)) << "a step reads rows only";
  table_rows_ = 2;
  EXPECT_THAT(engine_->Predict(Weights(), TestBatch({0, 1}), &forward).message(),
              HasSubstr("table is read whole, of its 5 rows 2 are here"));
}

TEST_F(TensorFlowEngineTest, RowsAreLookedUpByLabels) {
  engine_.reset();
  Open(LabelLookupManifest());
  features::FeatureBatch batch = TestBatch({0, 1});
  batch.raw[2] = GetNumbers<int64_t>(formats::DataType::kInt64, {}, {3, 1});
  KeptGradients sink;
  ASSERT_TRUE(Step(batch, sink).ok());
  EXPECT_THAT(sink.rows, ElementsAre(3, 1));
  EXPECT_THAT(sink.values[1], ElementsAre(30, 31, 10, 11));
  features::FeatureBatch found = batch;
  ASSERT_TRUE(engine_->FindIds(&found).ok());
  EXPECT_THAT(found.id_lists[0].ids, ElementsAre(3, 1));
  batch.raw[2] = GetNumbers<int64_t>(formats::DataType::kInt64, {}, {3, 5});
  EXPECT_THAT(Step(batch, sink).status().message(),
              HasSubstr("label y, row 1 of the batch: id 5 is outside table table of 5 rows"));
  batch.raw.pop_back();
  Forward forward;
  ASSERT_TRUE(engine_->Predict(Weights(), batch, &forward).ok());
  EXPECT_THAT(forward.logits, ElementsAre(1, 2, 3, 4));
}

TEST_F(TensorFlowEngineTest, AModelWithoutLabelsIsEvaluated) {
  engine_.reset();
  Open(ManifestWithoutLabels());
  features::FeatureBatch batch = TestBatch({0, 1});
  batch.raw.pop_back();
  Forward forward;
  ASSERT_TRUE(engine_->Predict(Weights(), batch, &forward).ok());
  EXPECT_EQ(forward.loss_sum, 10);
  KeptGradients sink;
  ASSERT_TRUE(Step(batch, sink).ok());
}

TEST_F(TensorFlowEngineTest, BadBatchesAreRefused) {
  const auto refused = [&](const features::FeatureBatch& batch) {
    KeptGradients sink;
    const auto result = Step(batch, sink);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(sink.order, IsEmpty());
    return std::string(result.status().message());
  };
  EXPECT_EQ(refused(TestBatch({0, 1, 2, 5})),
            "input ids, row 1 of the batch: id 5 is outside table table of 5 rows");
  EXPECT_THAT(refused(TestBatch({-1, 1})), HasSubstr("row 0 of the batch: id -1 is outside"));
  EXPECT_THAT(refused(TestBatch({0, int64_t{1} << 40})), HasSubstr("input ids: a value is no id"));
  features::FeatureBatch batch = TestBatch({0, 1});
  batch.raw[0].type = formats::DataType::kInt32;
  EXPECT_EQ(
      refused(batch),
      "input x (feature fx): the batch has int32 [2] per row, but the model takes float32 [2]");
  batch = TestBatch({0, 1});
  batch.raw[0].shape = {3};
  EXPECT_THAT(refused(batch), HasSubstr("float32 [3] per row, but the model takes float32 [2]"));
  batch = TestBatch({0, 1});
  batch.raw[2].bytes.pop_back();
  EXPECT_THAT(refused(batch), HasSubstr("label y (feature fy): its 7 bytes"));
  batch = TestBatch({0, 1});
  batch.id_lists.resize(2);
  EXPECT_THAT(refused(batch), HasSubstr("2 id lists"));
}

TEST_F(TensorFlowEngineTest, WeightsThatDoNotFitAreRefused) {
  KeptGradients sink;
  std::vector<VariableView> weights = Weights();
  weights[0].rows = 3;
  EXPECT_THAT(engine_->Step(weights, TestBatch({0, 1}), {}, sink).status().message(),
              HasSubstr("variable kernel is 3 x 2"));
  weights.pop_back();
  EXPECT_FALSE(engine_->Step(weights, TestBatch({0, 1}), {}, sink).ok());
}

TEST_F(TensorFlowEngineTest, GradientsOfAnotherShapeAreRefusedBeforeAnyIsGiven) {
  std::string manifest = TestManifest();
  manifest.replace(manifest.find("kernel_gradient:0"), 17, "table_gradient:0");
  engine_.reset();
  Open(manifest);
  KeptGradients sink;
  const auto result = Step(TestBatch({0, 1, 2, 3, 4, 0}), sink);
  EXPECT_THAT(result.status().message(), HasSubstr("gradient of kernel does not have its shape"));
  EXPECT_THAT(sink.order, IsEmpty());
}

}  // namespace
}  // namespace muster::engine::tensorflow
