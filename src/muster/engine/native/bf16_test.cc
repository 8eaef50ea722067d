// Compares large layers in bfloat16 with the same layers in float.
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/engine/native/graph.h"
#include "muster/engine/native/test_support.h"
#include "muster/math/gemm.h"

namespace muster::engine::native {
namespace {

features::FeatureBatch Batch() {
  return RandomBatch({.rows = 200, .dense_widths = {6}, .one_per_row_lists = 2});
}

std::unique_ptr<Engine> NewDeep(const EngineOptions& options) {
  GraphBuilder graph;
  std::vector<Node> parts = {graph.DenseInput(0, 6)};
  for (int i = 0; i < 2; ++i) {
    parts.push_back(
        graph.EmbeddingBag({.name = StrCat("e", i), .id_list = i, .rows = 5, .dimension = 40}));
  }
  Node x = graph.Concat(parts);
  x = graph.Dense(x, {.name = "h0", .units = 100, .activation = Activation::kRelu});
  x = graph.Dense(x, {.name = "h1", .units = 70, .activation = Activation::kRelu});
  const Node logits = graph.Dense(x, {.name = "logits", .units = 1});
  return std::move(graph).Finish(logits, NewBinaryHead(), options).value();
}

class Bf16Test : public testing::Test {
 protected:
  void SetUp() override {
    if (!math::SupportsBf16()) GTEST_SKIP() << "this processor has no AMX with bfloat16";
  }
};

double Norm(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += double{v} * v;
  return std::sqrt(sum);
}

TEST_F(Bf16Test, GradientsAreNearThoseOfFloats) {
  const auto exact = NewDeep({}), rounded = NewDeep({.training = Precision::kBfloat16});
  const TestWeights weights(*exact, 0.1);
  const auto batch = Batch();
  RecordingSink exact_sink(*exact), rounded_sink(*rounded);
  const auto exact_result = exact->Step(weights.views(), batch, {}, exact_sink);
  const auto rounded_result = rounded->Step(weights.views(), batch, {}, rounded_sink);
  ASSERT_TRUE(exact_result.ok() && rounded_result.ok());
  EXPECT_NEAR(rounded_result->loss, exact_result->loss, 1e-2);
  EXPECT_NE(rounded_result->loss, exact_result->loss);
  for (const auto& [name, gradient] : exact_sink.dense) {
    std::vector<float> difference = rounded_sink.dense[name];
    for (size_t i = 0; i < difference.size(); ++i) difference[i] -= gradient[i];
    // A rounded sum may fall on the other side of a relu.
    EXPECT_LT(Norm(difference), 0.15 * Norm(gradient)) << name;
  }
}

TEST_F(Bf16Test, TheSameNumberOfThreadsGivesTheSameBits) {
  for (const int threads : {1, 3}) {
    std::vector<RecordingSink> sinks;
    const TestWeights weights(*NewDeep({}), 0.1);
    const auto batch = Batch();
    for (int run = 0; run < 2; ++run) {
      const auto engine = NewDeep({.threads = threads, .training = Precision::kBfloat16});
      ASSERT_TRUE(engine->Step(weights.views(), batch, {}, sinks.emplace_back(*engine)).ok());
    }
    EXPECT_EQ(sinks[0].dense, sinks[1].dense) << threads;
  }
}

// Workers read kernels that they have packed together; a worker with few rows does not round.
TEST_F(Bf16Test, SeveralThreadsGiveTheLogitsOfOne) {
  const auto one = NewDeep({.inference = Precision::kBfloat16});
  const TestWeights weights(*one, 0.1);
  const auto batch = Batch();
  Forward expected;
  ASSERT_TRUE(one->Predict(weights.views(), batch, &expected).ok());
  for (const int threads : {2, 3, 4}) {
    const auto engine = NewDeep({.threads = threads, .inference = Precision::kBfloat16});
    Forward forward;
    for (int run = 0; run < 2; ++run) {
      ASSERT_TRUE(engine->Predict(weights.views(), batch, &forward).ok());
      if (threads < 4) {
        EXPECT_EQ(forward.logits, expected.logits) << threads;
      } else {
        EXPECT_NE(forward.logits, expected.logits) << threads;
      }
    }
  }
}

TEST_F(Bf16Test, InferenceIsInFloatUnlessBf16IsSet) {
  const auto exact = NewDeep({}), trained = NewDeep({.training = Precision::kBfloat16});
  const auto asked = NewDeep({.inference = Precision::kBfloat16});
  const TestWeights weights(*exact, 0.1);
  const auto batch = Batch();
  Forward by_exact, by_trained, by_asked;
  ASSERT_TRUE(exact->Predict(weights.views(), batch, &by_exact).ok());
  ASSERT_TRUE(trained->Predict(weights.views(), batch, &by_trained).ok());
  ASSERT_TRUE(asked->Predict(weights.views(), batch, &by_asked).ok());
  EXPECT_EQ(by_trained.logits, by_exact.logits);
  EXPECT_NE(by_asked.logits, by_exact.logits);
  EXPECT_THAT(by_asked.logits, testing::Pointwise(testing::FloatNear(0.05f), by_exact.logits));
}

}  // namespace
}  // namespace muster::engine::native
