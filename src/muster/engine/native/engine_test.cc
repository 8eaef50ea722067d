#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/engine/native/graph.h"
#include "muster/engine/native/test_support.h"

namespace muster::engine::native {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr BatchShape kShape = {
    .rows = 23, .one_per_row_lists = 2, .list_lists = 1, .table_rows = 9, .weighted = true};

BatchShape WideAndDeepShape(int rows = 23) {
  BatchShape shape = kShape;
  shape.rows = rows;
  shape.dense_widths = {2, 1};
  return shape;
}

// Every layer there is.
std::unique_ptr<Engine> NewWideAndDeep(int threads) {
  GraphBuilder graph;
  std::vector<Node> parts = {graph.DenseInput(0, 2), graph.DenseInput(1, 1)};
  for (int i = 0; i < 3; ++i) {
    parts.push_back(graph.EmbeddingBag(
        {.name = StrCat("e", i), .id_list = i, .rows = 9, .dimension = 4 * (i + 1)}));
  }
  Node x = graph.Concat(parts);
  x = graph.Dense(x, {.name = "h0", .units = 20, .activation = Activation::kRelu, .l2 = 0.01});
  x = graph.Dense(x, {.name = "h1", .units = 10, .activation = Activation::kRelu});
  x = graph.BatchNorm(x, {.name = "n"});
  x = graph.Dropout(x, 0.3);
  x = graph.Activate(x, Activation::kTanh);
  const Node deep = graph.Dense(x, {.name = "logits", .units = 1});
  const Node wide = graph.Linear({.tables = {{"t0", 0, 9}, {"t1", 1, 9}, {"t2", 2, 9}},
                                  .dense = {{"d", 0, 2}},
                                  .bias_name = "bias"});
  return std::move(graph)
      .Finish(graph.Add(deep, wide), NewBinaryHead(), {.threads = threads})
      .value();
}

// One table t0 of 9 rows.
std::unique_ptr<Engine> NewLinear() {
  GraphBuilder graph;
  const Node logits = graph.Linear({.tables = {{"t0", 0, 9}}});
  return std::move(graph).Finish(logits, NewBinaryHead()).value();
}

features::FeatureBatch IdBatch(std::vector<int32_t> ids) {
  features::FeatureBatch batch;
  batch.rows = static_cast<int>(ids.size());
  batch.labels.assign(ids.size(), 0);
  batch.id_lists.push_back({.ids = std::move(ids), .offsets = {}});
  return batch;
}

TEST(NativeEngineTest, ThreadsAgree) {
  const auto batch = RandomBatch(WideAndDeepShape());
  const StepContext context{.seed = 3, .step = 11};
  const auto one = NewWideAndDeep(1);
  TestWeights weights(*one);
  RecordingSink expected(*one);
  const auto loss = one->Step(weights.views(), batch, context, expected);
  ASSERT_TRUE(loss.ok()) << loss.status();
  for (const int threads : {2, 3, 5}) {
    const auto engine = NewWideAndDeep(threads);
    RecordingSink first(*engine), second(*engine);
    const auto result = engine->Step(weights.views(), batch, context, first);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_NEAR(result->loss, loss->loss, 1e-6);
    EXPECT_NEAR(result->data_loss, loss->data_loss, 1e-6);
    EXPECT_EQ(first.order, expected.order);
    EXPECT_EQ(first.rows, expected.rows);
    for (const auto* part : {&first.dense, &first.statistics}) {
      for (const auto& [name, values] : *part) {
        const auto& truth = part == &first.dense ? expected.dense[name] : expected.statistics[name];
        ASSERT_EQ(values.size(), truth.size());
        for (size_t i = 0; i < values.size(); ++i) {
          EXPECT_NEAR(values[i], truth[i], 1e-5) << name << " " << i << " threads " << threads;
        }
      }
    }
    // The same count of threads gives the same bytes.
    const auto again = engine->Step(weights.views(), batch, context, second);
    EXPECT_EQ(again->loss, result->loss);
    EXPECT_EQ(second.dense, first.dense);
    EXPECT_EQ(second.statistics, first.statistics);
  }
}

TEST(NativeEngineTest, MoreThreadsThanRows) {
  const auto one = NewWideAndDeep(1), many = NewWideAndDeep(4);
  const auto batch = RandomBatch(WideAndDeepShape(2));
  TestWeights weights(*one);
  RecordingSink expected(*one), sink(*many);
  const auto loss = one->Step(weights.views(), batch, {}, expected);
  const auto result = many->Step(weights.views(), batch, {}, sink);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(result->loss, loss->loss, 1e-6);
  for (const auto& [name, values] : sink.dense) {
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(values[i], expected.dense[name][i], 1e-5) << name << " " << i;
    }
  }
}

// A step of 23 rows, then one of 7, then 23 again: nothing of the other sizes is left.
TEST(NativeEngineTest, BatchesOfDifferentSizes) {
  for (const int threads : {1, 2}) {
    const auto engine = NewWideAndDeep(threads);
    TestWeights weights(*engine);
    for (const int rows : {23, 7, 23, 64}) {
      const auto batch = RandomBatch(WideAndDeepShape(rows));
      RecordingSink sink(*engine), expected(*engine);
      const auto other = NewWideAndDeep(threads);
      EXPECT_EQ(engine->Step(weights.views(), batch, {}, sink)->loss,
                other->Step(weights.views(), batch, {}, expected)->loss);
      EXPECT_EQ(sink.dense, expected.dense);
      EXPECT_EQ(sink.statistics, expected.statistics);
    }
  }
}

TEST(NativeEngineTest, EachVariableIsGivenOnceBackwards) {
  const auto engine = NewWideAndDeep(1);
  TestWeights weights(*engine);
  RecordingSink sink(*engine);
  ASSERT_TRUE(engine->Step(weights.views(), RandomBatch(WideAndDeepShape()), {}, sink).ok());
  EXPECT_THAT(sink.order,
              ElementsAre("t0", "t1", "t2", "d", "bias", "logits/kernel", "logits/bias", "n/gamma",
                          "n/beta", "n/moving_mean", "n/moving_variance", "h1/kernel", "h1/bias",
                          "h0/kernel", "h0/bias", "e2", "e1", "e0"));
  EXPECT_EQ(std::set(sink.order.begin(), sink.order.end()).size(), engine->variables().size());
}

// A sink may update at once: weights overwritten when their gradient is given change nothing of
// what follows in the step.
TEST(NativeEngineTest, VariablesAreNotReadAfterTheirGradientWasGiven) {
  class Spoiler final : public GradientSink {
   public:
    explicit Spoiler(std::span<const VariableView> views) : views_(views) {}
    void Dense(int variable, std::span<const float> gradient) override {
      given.insert(given.end(), gradient.begin(), gradient.end());
      Spoil(variable);
    }
    void Rows(int variable, std::span<const int32_t>, std::span<const float> gradient) override {
      given.insert(given.end(), gradient.begin(), gradient.end());
      Spoil(variable);
    }
    void Statistic(int variable, std::span<const float>) override { Spoil(variable); }
    std::vector<float> given;
    bool spoils = false;

   private:
    void Spoil(int variable) {
      const VariableView& view = views_[static_cast<size_t>(variable)];
      if (spoils) std::fill_n(view.data, view.rows * view.cols, 1e30f);
    }
    std::span<const VariableView> views_;
  };
  const auto batch = RandomBatch(WideAndDeepShape());
  for (const int threads : {1, 2}) {
    const auto engine = NewWideAndDeep(threads);
    TestWeights weights(*engine);
    Spoiler tame(weights.views()), wild(weights.views());
    wild.spoils = true;
    const double loss = engine->Step(weights.views(), batch, {}, tame)->loss;
    EXPECT_EQ(engine->Step(weights.views(), batch, {}, wild)->loss, loss);
    EXPECT_EQ(wild.given, tame.given);
  }
}

TEST(NativeEngineTest, RowsAreDistinctInOrderOfAppearanceAndSummed) {
  const auto engine = NewLinear();
  TestWeights weights(*engine);
  std::fill(weights["t0"].begin(), weights["t0"].end(), 0.0f);
  RecordingSink sink(*engine);
  ASSERT_TRUE(engine->Step(weights.views(), IdBatch({7, 2, 7, -1, 0, 7, 2, -1}), {}, sink).ok());
  EXPECT_THAT(sink.rows["t0"], ElementsAre(7, 2, 0));
  // Each row adds (sigmoid(0) - 0) / 8.
  EXPECT_THAT(sink.dense["t0"], ElementsAre(1 / 16.0f, 0, 2 / 16.0f, 0, 0, 0, 0, 3 / 16.0f, 0));
}

TEST(NativeEngineTest, DenominatorSpreadsABatchOverReplicas) {
  const auto engine = NewWideAndDeep(1);
  TestWeights weights(*engine);
  auto batch = RandomBatch(WideAndDeepShape());
  batch.weights.clear();
  RecordingSink whole(*engine), half(*engine);
  const auto a = engine->Step(weights.views(), batch, {}, whole);
  const auto b = engine->Step(weights.views(), batch, {.denominator = 46}, half);
  EXPECT_NEAR(b->loss, a->loss / 2, 1e-9);
  EXPECT_LT(a->data_loss, a->loss);
  for (const auto& [name, values] : whole.dense) {
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(half.dense[name][i], values[i] / 2, 1e-6) << name;
    }
  }
}

TEST(NativeEngineTest, DropoutDependsOnSeedStepAndReplica) {
  const auto engine = NewWideAndDeep(1);
  TestWeights weights(*engine);
  const auto batch = RandomBatch(WideAndDeepShape());
  std::set<double> losses;
  for (const StepContext& context :
       {StepContext{.seed = 1, .step = 1}, StepContext{.seed = 2, .step = 1},
        StepContext{.seed = 1, .step = 2}, StepContext{.seed = 1, .step = 1, .replica = 1}}) {
    RecordingSink sink(*engine);
    losses.insert(engine->Step(weights.views(), batch, context, sink)->loss);
  }
  EXPECT_EQ(losses.size(), 4u);
}

TEST(NativeEngineTest, DropoutKeepsTheMean) {
  GraphBuilder graph;
  const Node x = graph.Dropout(graph.DenseInput(0, 1), 0.25);
  const auto engine =
      std::move(graph)
          .Finish(graph.Dense(x, {.name = "d", .units = 1}), NewBinaryHead(), {.threads = 2})
          .value();
  TestWeights weights(*engine);
  weights["d/kernel"] = {0};
  weights["d/bias"] = {0};
  features::FeatureBatch batch;
  batch.rows = 20000;
  batch.dense.push_back({.width = 1, .values = std::vector<float>(20000, 1)});
  batch.labels.assign(20000, 0);
  RecordingSink sink(*engine);
  ASSERT_TRUE(engine->Step(weights.views(), batch, {.seed = 9}, sink).ok());
  // The kernel's gradient is half the mean of what is left of ones: 5 standard deviations.
  EXPECT_NEAR(sink.dense["d/kernel"][0], 0.5, 0.5 * 5 * std::sqrt(0.25 / 0.75 / 20000));
}

TEST(NativeEngineTest, BatchNormGivesMeanAndPopulationVariance) {
  for (const int threads : {1, 2, 3}) {
    GraphBuilder graph;
    const Node x = graph.BatchNorm(graph.DenseInput(0, 2), {.name = "n", .epsilon = 0.5});
    const auto engine = std::move(graph)
                            .Finish(graph.Dense(x, {.name = "d", .units = 1}), NewBinaryHead(),
                                    {.threads = threads})
                            .value();
    TestWeights weights(*engine);
    features::FeatureBatch batch;
    batch.rows = 4;
    batch.dense.push_back({.width = 2, .values = {1, 1000, 2, 1000, 3, 1000, 6, 1004}});
    batch.labels = {0, 1, 0, 1};
    RecordingSink sink(*engine);
    ASSERT_TRUE(engine->Step(weights.views(), batch, {}, sink).ok());
    EXPECT_THAT(sink.statistics["n/moving_mean"], ElementsAre(3, 1001));
    EXPECT_THAT(sink.statistics["n/moving_variance"], ElementsAre(3.5f, 3));

    // Inference takes the moving ones.
    weights["n/gamma"] = {2, 0};
    weights["n/beta"] = {1, 0};
    weights["n/moving_mean"] = {10, 0};
    weights["n/moving_variance"] = {3.5f, 1};
    weights["d/kernel"] = {1, 1};
    weights["d/bias"] = {0.25f};
    Forward out;
    ASSERT_TRUE(engine->Predict(weights.views(), batch, &out).ok());
    for (size_t row = 0; row < 4; ++row) {
      const double x0 = batch.dense[0].values[2 * row];
      EXPECT_NEAR(out.logits[row], 2 * (x0 - 10) / 2 + 1 + 0.25, 1e-5);
    }
  }
}

TEST(NativeEngineTest, PredictGivesLogitsAndLoss) {
  for (const int threads : {1, 2}) {
    const auto engine = NewWideAndDeep(threads);
    TestWeights weights(*engine);
    auto batch = RandomBatch(WideAndDeepShape());
    Forward out, again, unlabelled;
    ASSERT_TRUE(engine->Predict(weights.views(), batch, &out).ok());
    ASSERT_EQ(out.logits.size(), 23u);
    double expected = 0;
    for (size_t i = 0; i < 23; ++i) {
      const double x = out.logits[i];
      expected += batch.weights[i] *
                  (std::max(x, 0.0) - x * batch.labels[i] + std::log1p(std::exp(-std::fabs(x))));
    }
    EXPECT_NEAR(out.loss_sum, expected, 1e-4);
    // Dropout is off: the same each time; a training step between changes nothing.
    RecordingSink sink(*engine);
    ASSERT_TRUE(engine->Step(weights.views(), batch, {}, sink).ok());
    ASSERT_TRUE(engine->Predict(weights.views(), batch, &again).ok());
    EXPECT_EQ(again.logits, out.logits);
    batch.labels.clear();
    ASSERT_TRUE(engine->Predict(weights.views(), batch, &unlabelled).ok());
    EXPECT_EQ(unlabelled.logits, out.logits);
    EXPECT_EQ(unlabelled.loss_sum, 0);
  }
}

// A table may be a block of rows, as from a parameter server.
TEST(NativeEngineTest, TablesMayBeBlocks) {
  const auto engine = NewLinear();
  TestWeights weights(*engine);
  float block[2] = {0.5f, -2};
  weights.mutable_views()[0] = {block, 2, 1};
  Forward out;
  ASSERT_TRUE(engine->Predict(weights.views(), IdBatch({1, 0, -1}), &out).ok());
  EXPECT_THAT(out.logits, ElementsAre(-2, 0.5f, 0));
  EXPECT_EQ(engine->Predict(weights.views(), IdBatch({2}), &out).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(NativeEngineTest, NanLossIsReportedBeforeAnyGradient) {
  for (const int threads : {1, 3}) {
    const auto engine = NewWideAndDeep(threads);
    TestWeights weights(*engine);
    auto batch = RandomBatch(WideAndDeepShape());
    batch.dense[0].values[5] = NAN;
    RecordingSink sink(*engine);
    const auto result = engine->Step(weights.views(), batch, {.step = 41}, sink);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(result.status().message()), HasSubstr("loss is NaN at step 42"));
    EXPECT_THAT(sink.order, IsEmpty());

    // The engine is none the worse.
    batch.dense[0].values[5] = 0;
    EXPECT_TRUE(engine->Step(weights.views(), batch, {}, sink).ok());
  }
}

TEST(NativeEngineTest, InfiniteLossIsReportedToo) {
  class InfiniteHead final : public Head {
    int logits_dimension() const override { return 1; }
    absl::Status CheckLabels(std::span<const float>) const override { return absl::OkStatus(); }
    void Loss(std::span<const float>, std::span<const float>, std::span<const float>, float,
              double* loss_sum, std::span<float>) const override {
      *loss_sum = std::numeric_limits<double>::infinity();
    }
  };
  GraphBuilder graph;
  const Node logits = graph.Linear({.tables = {{"t", 0, 9}}});
  const auto engine = std::move(graph).Finish(logits, std::make_unique<InfiniteHead>()).value();
  TestWeights weights(*engine);
  RecordingSink sink(*engine);
  const auto result = engine->Step(weights.views(), IdBatch({1}), {.step = 6}, sink);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("loss is infinite at step 7"));
  EXPECT_THAT(sink.order, IsEmpty());
}

TEST(NativeEngineTest, BadBatchesAreRefused) {
  const auto engine = NewWideAndDeep(2);
  TestWeights weights(*engine);
  const auto good = RandomBatch(WideAndDeepShape());
  const auto expect_error = [&](features::FeatureBatch batch, const std::string& message) {
    RecordingSink sink(*engine);
    const auto result = engine->Step(weights.views(), batch, {}, sink);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(message));
    EXPECT_THAT(sink.order, IsEmpty());
  };
  auto batch = good;
  batch.id_lists[0].ids[4] = 9;
  expect_error(batch, "id list 0, entry 4: id 9 is outside table e0 of 9 rows");
  batch.id_lists[0].ids[4] = -2;
  expect_error(batch, "id list 0, entry 4: id -2 is outside");
  batch.id_lists[0].ids[4] = std::numeric_limits<int32_t>::min();
  expect_error(batch, "is outside");
  batch = good;
  batch.id_lists[2].ids.back() = 100;
  expect_error(batch, "id 100 is outside table e2");
  batch = good;
  batch.id_lists[1].ids.pop_back();
  expect_error(batch, "id list 1 of table e1");
  batch = good;
  batch.id_lists[2].offsets.back() += 1;
  expect_error(batch, "id list 2 of table e2");
  batch = good;
  std::swap(batch.id_lists[2].offsets[3], batch.id_lists[2].offsets[12]);
  expect_error(batch, "id list 2 of table e2");
  batch = good;
  batch.id_lists.pop_back();
  expect_error(batch, "the batch has 2 id lists");
  batch = good;
  batch.dense[0].values.pop_back();
  expect_error(batch, "dense column 0 of the batch is not 23 x 2");
  batch = good;
  batch.dense.pop_back();
  expect_error(batch, "dense column 1");
  batch = good;
  batch.labels[22] = 3;
  expect_error(batch, "row 22: label 3");
  batch = good;
  batch.labels.clear();
  expect_error(batch, "0 labels");
  batch = good;
  batch.weights.pop_back();
  expect_error(batch, "22 weights");
  expect_error({}, "the batch has no rows");

  RecordingSink sink(*engine);
  EXPECT_EQ(engine->Step(weights.views().subspan(1), good, {}, sink).status().code(),
            absl::StatusCode::kInvalidArgument);
  weights.mutable_views()[weights.IndexOf("h0/kernel")].rows -= 1;
  EXPECT_THAT(std::string(engine->Step(weights.views(), good, {}, sink).status().message()),
              HasSubstr("the memory of variable h0/kernel"));
}

}  // namespace
}  // namespace muster::engine::native
