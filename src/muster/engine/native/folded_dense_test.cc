#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "muster/engine/native/graph.h"
#include "muster/engine/native/test_support.h"

namespace muster::engine::native {
namespace {

constexpr int kBatchRows = 37, kFoldableRows = 9;

struct FoldableShape {
  int threads = 1;
  double max_norm = 0;
  int64_t table_rows = kFoldableRows;
  Activation activation = Activation::kRelu;
};

// A model with embeddings before, between and after numbers, one of them shared by two dense
// layers.
std::unique_ptr<Engine> NewFoldable(const FoldableShape& shape) {
  GraphBuilder graph;
  const auto bag = [&](int list, const char* name, int dimension, double max_norm = 0) {
    return EmbeddingOptions{.name = name,
                            .id_list = list,
                            .rows = shape.table_rows,
                            .dimension = dimension,
                            .max_norm = max_norm,
                            .layer = StrCat(name, list)};
  };
  std::vector<Node> parts = {graph.EmbeddingBag(bag(0, "a", 4, shape.max_norm)),
                             graph.DenseInput(0, 2), graph.EmbeddingBag(bag(1, "b", 8))};
  for (const Node node : graph.SharedEmbeddingBags({bag(0, "c", 5), bag(2, "c", 5)})) {
    parts.push_back(node);
  }
  parts.push_back(graph.DenseInput(1, 1));
  parts.push_back(graph.EmbeddingBag(bag(2, "narrow", 2)));
  Node x =
      graph.Dense(graph.Concat(parts), {.name = "h", .units = 21, .activation = shape.activation});
  x = graph.Dense(x, {.name = "logits", .units = 1});
  return std::move(graph).Finish(x, NewBinaryHead(), {.threads = shape.threads}).value();
}

features::FeatureBatch OneIdPerRow(uint64_t seed = 7) {
  return RandomBatch({.rows = kBatchRows,
                      .dense_widths = {2, 1},
                      .one_per_row_lists = 3,
                      .table_rows = kFoldableRows},
                     seed);
}

std::vector<float> ComputeLogits(Engine& engine, const TestWeights& weights,
                                 const features::FeatureBatch& batch) {
  Forward forward;
  const absl::Status status = engine.Predict(weights.views(), batch, &forward);
  EXPECT_TRUE(status.ok()) << status;
  return forward.logits;
}

void ExpectNearLogits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i], b[i], 3e-6 * std::max(1.0f, std::abs(b[i]))) << "row " << i;
  }
}

TEST(FoldedDenseTest, PredictsAsTheLayersDo) {
  for (const Activation activation : {Activation::kRelu, Activation::kTanh, Activation::kNone}) {
    const auto engine = NewFoldable({.activation = activation});
    const TestWeights weights(*engine);
    const auto plain = ComputeLogits(*engine, weights, OneIdPerRow());
    ASSERT_TRUE(engine->Freeze(weights.views()).ok());
    const auto folded = ComputeLogits(*engine, weights, OneIdPerRow());
    ExpectNearLogits(folded, plain);
    EXPECT_NE(folded, plain);  // the results differ since folded sums are taken in another order
  }
}

TEST(FoldedDenseTest, ThreadsAndBatchesGiveTheSameBytes) {
  const auto one = NewFoldable({});
  const TestWeights weights(*one);
  ASSERT_TRUE(one->Freeze(weights.views()).ok());
  const auto expected = ComputeLogits(*one, weights, OneIdPerRow());
  for (const int threads : {2, 3, 5}) {
    const auto engine = NewFoldable({.threads = threads});
    ASSERT_TRUE(engine->Freeze(weights.views()).ok());
    EXPECT_EQ(ComputeLogits(*engine, weights, OneIdPerRow()), expected) << threads;
    ComputeLogits(*engine, weights, OneIdPerRow(8));
    EXPECT_EQ(ComputeLogits(*engine, weights, OneIdPerRow()), expected) << threads;
  }
}

TEST(FoldedDenseTest, ChangedWeightsAndStepsAreNoticed) {
  const auto engine = NewFoldable({});
  TestWeights weights(*engine), other(*engine, 0.3);
  const auto plain_of_other = ComputeLogits(*engine, other, OneIdPerRow());
  ASSERT_TRUE(engine->Freeze(weights.views()).ok());
  EXPECT_EQ(ComputeLogits(*engine, other, OneIdPerRow()), plain_of_other);
  RecordingSink sink(*engine);
  ASSERT_TRUE(engine->Step(weights.views(), OneIdPerRow(), {}, sink).ok());
  for (size_t i = 0; i < engine->variables().size(); ++i) weights.at(i) = other.at(i);
  EXPECT_EQ(ComputeLogits(*engine, weights, OneIdPerRow()), plain_of_other);
  ASSERT_TRUE(engine->Freeze(weights.views()).ok());
  ExpectNearLogits(ComputeLogits(*engine, weights, OneIdPerRow()), plain_of_other);
}

TEST(FoldedDenseTest, ListsOfIdsAreNotFolded) {
  const auto engine = NewFoldable({});
  const TestWeights weights(*engine);
  features::FeatureBatch batch = OneIdPerRow();
  batch.id_lists =
      RandomBatch({.rows = kBatchRows, .list_lists = 3, .table_rows = kFoldableRows}).id_lists;
  const auto plain = ComputeLogits(*engine, weights, batch);
  ASSERT_TRUE(engine->Freeze(weights.views()).ok());
  EXPECT_EQ(ComputeLogits(*engine, weights, batch), plain);
  batch = OneIdPerRow();
  batch.id_lists[1].weights.assign(kBatchRows, 0.5f);
  EXPECT_EQ(ComputeLogits(*engine, weights, batch),
            ComputeLogits(*NewFoldable({}), weights, batch));
}

TEST(FoldedDenseTest, ATableWithMaxNormIsReadAsWithoutFolding) {
  const auto engine = NewFoldable({.max_norm = 0.4});
  const TestWeights weights(*engine);
  const auto plain = ComputeLogits(*engine, weights, OneIdPerRow());
  ASSERT_TRUE(engine->Freeze(weights.views()).ok());
  ExpectNearLogits(ComputeLogits(*engine, weights, OneIdPerRow()), plain);
}

TEST(FoldedDenseTest, LargeTablesAreNotFolded) {
  const auto engine = NewFoldable({.table_rows = 100'000});
  const TestWeights weights(*engine);
  const auto plain = ComputeLogits(*engine, weights, OneIdPerRow());
  ASSERT_TRUE(engine->Freeze(weights.views()).ok());
  EXPECT_EQ(ComputeLogits(*engine, weights, OneIdPerRow()), plain);
}

TEST(FoldedDenseTest, WeightsThatDoNotFitAreRefused) {
  const auto engine = NewFoldable({});
  TestWeights weights(*engine);
  weights.mutable_views().pop_back();
  EXPECT_EQ(engine->Freeze(weights.views()).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster::engine::native
