#include <algorithm>
#include <cmath>
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
using ::testing::IsEmpty;

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
    // The same number of threads gives the same bytes.
    const auto again = engine->Step(weights.views(), batch, context, second);
    EXPECT_EQ(again->loss, result->loss);
    EXPECT_EQ(second.dense, first.dense);
    EXPECT_EQ(second.statistics, first.statistics);
  }
}

// Workers that compute parts of a large kernel's gradient, each over all rows, give the same bytes
// as one thread; from 4 workers on the parts are too small for its 200 rows, and the shares of the
// workers' own rows are summed.
TEST(NativeEngineTest, PartsOfLargeKernels) {
  const auto build = [](int threads) {
    GraphBuilder graph;
    Node x = graph.DenseInput(0, 200);
    x = graph.Dense(x, {.name = "a", .units = 130, .activation = Activation::kTanh, .l2 = 0.1});
    x = graph.Dense(x, {.name = "b", .units = 140, .activation = Activation::kRelu, .l1 = 0.1});
    const Node logits = graph.Dense(x, {.name = "logits", .units = 1});
    return std::move(graph).Finish(logits, NewBinaryHead(), {.threads = threads}).value();
  };
  const auto one = build(1);
  TestWeights weights(*one, 0.1);
  for (const int rows : {23, 900, 2}) {
    const auto batch = RandomBatch({.rows = rows, .dense_widths = {200}});
    RecordingSink expected(*one);
    const auto loss = one->Step(weights.views(), batch, {}, expected);
    ASSERT_TRUE(loss.ok()) << loss.status();
    for (const int threads : {2, 3, 4}) {
      SCOPED_TRACE(StrCat(rows, " rows, ", threads, " threads"));
      const auto engine = build(threads);
      RecordingSink sink(*engine);
      const auto result = engine->Step(weights.views(), batch, {}, sink);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_NEAR(result->loss, loss->loss, 1e-6);
      if (threads < 4 && rows < 900) {
        EXPECT_EQ(sink.dense["a/kernel"], expected.dense["a/kernel"]);
      }
      for (const auto& [name, values] : sink.dense) {
        const std::vector<float>& truth = expected.dense[name];
        ASSERT_EQ(values.size(), truth.size());
        for (size_t i = 0; i < values.size(); ++i) {
          ASSERT_NEAR(values[i], truth[i], 1e-5) << name << " " << i;
        }
      }
    }
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

// A head that sums gives the mean's gradient times the number of rows; for a part of a batch it
// gives what that part adds to the whole batch's sum.
TEST(NativeEngineTest, AHeadMaySum) {
  const auto build = [](bool sums) {
    GraphBuilder graph;
    const Node logits = graph.Dense(graph.DenseInput(0, 3), {.name = "logits", .units = 1});
    return std::move(graph).Finish(logits, NewHead({.sums = sums}), {}).value();
  };
  const auto mean = build(false), sum = build(true);
  const auto batch = RandomBatch({.rows = 8, .dense_widths = {3}});
  TestWeights weights(*mean);
  RecordingSink means(*mean), sums(*sum), part(*sum);
  const auto mean_loss = mean->Step(weights.views(), batch, {}, means);
  const auto sum_loss = sum->Step(weights.views(), batch, {}, sums);
  ASSERT_TRUE(sum->Step(weights.views(), batch, {.denominator = 20}, part).ok());
  ASSERT_TRUE(sum_loss.ok()) << sum_loss.status();
  EXPECT_NEAR(sum_loss->loss, 8 * mean_loss->loss, 1e-5);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(sums.dense["logits/kernel"][i], 8 * means.dense["logits/kernel"][i], 1e-5);
    EXPECT_EQ(part.dense["logits/kernel"][i], sums.dense["logits/kernel"][i]);
  }
}

TEST(NativeEngineTest, EachVariablesGradientIsGivenOnceBackwards) {
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
  // The kernel's gradient is half the mean of the ones that were kept; the tolerance is 5 standard
  // deviations.
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

    // Inference uses the moving statistics.
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

TEST(NativeEngineTest, PredictGivesTheSumOfLosses) {
  for (const int threads : {1, 2}) {
    const auto engine = NewWideAndDeep(threads);
    TestWeights weights(*engine);
    const auto batch = RandomBatch(WideAndDeepShape());
    Forward out;
    ASSERT_TRUE(engine->Predict(weights.views(), batch, &out).ok());
    ASSERT_EQ(out.logits.size(), 23u);
    double expected = 0;
    for (size_t i = 0; i < 23; ++i) {
      const double x = out.logits[i];
      expected += batch.weights[i] *
                  (std::max(x, 0.0) - x * batch.labels[i] + std::log1p(std::exp(-std::fabs(x))));
    }
    EXPECT_NEAR(out.loss_sum, expected, 1e-4);
  }
}

TEST(NativeEngineTest, WatchedNodesCanBeSeenAfterAStep) {
  for (const int threads : {1, 2}) {
    GraphBuilder graph;
    const Node x = graph.Concat({graph.DenseInput(0, 1), graph.DenseInput(1, 1)});
    const Node h = graph.Dense(x, {.name = "h", .units = 3, .activation = Activation::kRelu});
    const Node logits = graph.Dense(h, {.name = "d", .units = 1});
    graph.Watch(h, "hidden");
    graph.Watch(logits, "d");
    const auto engine =
        std::move(graph).Finish(logits, NewBinaryHead(), {.threads = threads}).value();
    EXPECT_THAT(engine->activations(), IsEmpty());  // before the first step
    TestWeights weights(*engine);
    weights["h/kernel"] = {1, 2, -1, 10, 20, -10};
    weights["h/bias"] = {0, -50, 0};
    weights["d/kernel"] = {1, 1, 1};
    weights["d/bias"] = {0.5f};
    features::FeatureBatch batch;
    batch.rows = 2;
    batch.dense = {{1, {1, 2}}, {1, {3, 4}}};
    batch.labels = {0, 1};
    RecordingSink sink(*engine);
    ASSERT_TRUE(engine->Step(weights.views(), batch, {}, sink).ok());
    const auto seen = engine->activations();
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[0].name, "hidden");
    ASSERT_EQ(seen[0].rows, 2);
    ASSERT_EQ(seen[0].width, 3);
    const auto row = [](const Activations& of, int i) {
      return std::vector<float>(of.values + i * of.ld, of.values + i * of.ld + of.width);
    };
    EXPECT_THAT(row(seen[0], 0), ElementsAre(31, 12, 0));
    EXPECT_THAT(row(seen[0], 1), ElementsAre(42, 34, 0));
    EXPECT_EQ(seen[1].name, "d");
    EXPECT_THAT(row(seen[1], 0), ElementsAre(43.5f));
    EXPECT_THAT(row(seen[1], 1), ElementsAre(76.5f));

    // An evaluation between two steps does not change the activations of the last step.
    features::FeatureBatch other = batch;
    other.rows = 3;
    other.dense = {{1, {0, 0, 0}}, {1, {0, 0, 0}}};
    other.labels = {0, 0, 0};
    Forward out;
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(engine->Predict(weights.views(), other, &out).ok());
      const auto kept = engine->activations();
      ASSERT_EQ(kept[0].rows, 2);
      EXPECT_THAT(row(kept[0], 1), ElementsAre(42, 34, 0));
      EXPECT_THAT(row(kept[1], 0), ElementsAre(43.5f));
    }
    ASSERT_TRUE(engine->Step(weights.views(), other, {}, sink).ok());
    EXPECT_EQ(engine->activations()[0].rows, 3);
  }
}

}  // namespace
}  // namespace muster::engine::native
