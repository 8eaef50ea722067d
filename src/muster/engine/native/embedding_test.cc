// Tests bags of ids with weights, pooled as sequences, limited in norm and sharing a table.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/engine/native/gradient_check.h"
#include "muster/engine/native/graph.h"

namespace muster::engine::native {
namespace {

using features::Combiner;
using features::IdList;
using features::Pooling;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Engine> FinishedBags(GraphBuilder&& graph, Node node, int threads = 1) {
  const Node logits = graph.Dense(node, {.name = "logits", .units = 1});
  auto engine = std::move(graph).Finish(logits, NewBinaryHead(), {.threads = threads});
  EXPECT_TRUE(engine.ok()) << engine.status();
  return *std::move(engine);
}

// Gives each id a weight, about one in five of which is not above zero.
void GiveWeights(features::FeatureBatch* batch) {
  RandomStream random(20261121, RandomPurpose::kSampleData, 3);
  for (IdList& list : batch->id_lists) {
    for (size_t i = 0; i < list.ids.size(); ++i) {
      const bool is_positive = random.Below(5) > 0;
      list.weights.push_back(is_positive ? 0.5F + random.Uniform() : -random.Uniform());
    }
  }
}

EmbeddingOptions Table(std::string name, int list) {
  return {.name = std::move(name), .id_list = list, .rows = 5, .dimension = 3};
}

constexpr Combiner kCombiners[] = {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN};
constexpr Pooling kPoolings[] = {Pooling::kSum, Pooling::kMean, Pooling::kSqrtN, Pooling::kMax,
                                 Pooling::kLast};

// Computes the bag of one row, whose table is {1, 10}, {2, 20}, {3, 30} and, as the last row, {-6,
// 8}.
std::vector<float> ComputeBag(const IdList& list, EmbeddingOptions options) {
  GraphBuilder graph;
  options.name = "e";
  options.rows = 4;
  options.dimension = 2;
  const Node bag = graph.EmbeddingBag(options);
  std::vector<float> sums;
  const auto engine = FinishedBags(std::move(graph), bag);
  TestWeights weights(*engine);
  weights["e"] = {1, 10, 2, 20, 3, 30, -6, 8};
  weights["logits/bias"] = {0};
  features::FeatureBatch batch;
  batch.rows = 1;
  batch.id_lists = {list};
  for (const int i : {0, 1}) {
    weights["logits/kernel"] = {i == 0 ? 1.0F : 0.0F, i == 1 ? 1.0F : 0.0F};
    Forward forward;
    EXPECT_TRUE(engine->Predict(weights.views(), batch, &forward).ok());
    sums.push_back(forward.logits[0]);
  }
  return sums;
}

TEST(EmbeddingTest, WeightsAreTensorFlows) {
  const IdList list{.ids = {0, 2, -1, 1}, .offsets = {0, 4}, .weights = {2, 0.5, 7, -1}};
  EXPECT_THAT(ComputeBag(list, {.combiner = Combiner::kSum}), ElementsAre(1.5, 15));
  // An id with a weight below zero is not counted, nor is the value without an id.
  EXPECT_THAT(ComputeBag(list, {.combiner = Combiner::kMean}), ElementsAre(3.5F / 2.5F, 35 / 2.5F));
  const float root = 1 / std::sqrt(4.25F);
  EXPECT_THAT(ComputeBag(list, {.combiner = Combiner::kSqrtN}),
              ElementsAre(3.5F * root, 35 * root));
  // The result is 0 if no weight is above zero.
  const IdList none{.ids = {0, 1}, .offsets = {0, 2}, .weights = {0, -1}};
  EXPECT_THAT(ComputeBag(none, {.combiner = Combiner::kMean}), ElementsAre(0, 0));
  EXPECT_THAT(ComputeBag(none, {.combiner = Combiner::kSum}), ElementsAre(-2, -20));
  const IdList scalar{.ids = {1}, .offsets = {}, .weights = {3}};
  EXPECT_THAT(ComputeBag(scalar, {.combiner = Combiner::kSum}), ElementsAre(6, 60));
  EXPECT_THAT(ComputeBag(scalar, {.combiner = Combiner::kMean}), ElementsAre(2, 20));
}

TEST(EmbeddingTest, PoolsStepsInOrder) {
  const IdList list{.ids = {2, -1, 3, 1}, .offsets = {0, 4}};
  EXPECT_THAT(ComputeBag(list, {.pooling = Pooling::kSum}), ElementsAre(-1, 58));
  // A value without an id counts as a step of zeros.
  EXPECT_THAT(ComputeBag(list, {.pooling = Pooling::kMean}), ElementsAre(-0.25, 14.5));
  EXPECT_THAT(ComputeBag(list, {.pooling = Pooling::kSqrtN}), ElementsAre(-0.5, 29));
  EXPECT_THAT(ComputeBag(list, {.pooling = Pooling::kMax}), ElementsAre(3, 30));
  EXPECT_THAT(ComputeBag(list, {.pooling = Pooling::kLast}), ElementsAre(2, 20));
  const IdList unknown{.ids = {3, -1}, .offsets = {0, 2}};
  EXPECT_THAT(ComputeBag(unknown, {.pooling = Pooling::kMax}), ElementsAre(0, 8));
  EXPECT_THAT(ComputeBag(unknown, {.pooling = Pooling::kLast}), ElementsAre(0, 0));
  for (const Pooling pooling : kPoolings) {
    EXPECT_THAT(ComputeBag({.ids = {}, .offsets = {0, 0}}, {.pooling = pooling}),
                ElementsAre(0, 0));
  }
}

TEST(EmbeddingTest, ClipsRowsToMaxNorm) {
  const IdList list{.ids = {3, 0}, .offsets = {0, 2}};
  const float root = std::sqrt(101.0F);
  EXPECT_THAT(ComputeBag(list, {.combiner = Combiner::kSum, .max_norm = 5}),
              ElementsAre(testing::FloatNear(-3 + 5 / root, 1e-6F),
                          testing::FloatNear(4 + 50 / root, 1e-5F)));
  EXPECT_THAT(ComputeBag({.ids = {3}, .offsets = {}}, {.max_norm = 5}), ElementsAre(-3, 4));
  EXPECT_THAT(ComputeBag(list, {.combiner = Combiner::kSum, .max_norm = 20}), ElementsAre(-5, 18));
}

TEST(EmbeddingGradientTest, Weights) {
  for (const Combiner combiner : kCombiners) {
    SCOPED_TRACE(static_cast<int>(combiner));
    GraphBuilder graph;
    std::vector<Node> parts;
    for (const int list : {0, 1}) {
      EmbeddingOptions options = Table(StrCat("e", list), list);
      options.combiner = combiner;
      parts.push_back(graph.EmbeddingBag(options));
    }
    const auto engine = FinishedBags(std::move(graph), graph.Concat(parts));
    auto batch = RandomBatch({.rows = 14, .one_per_row_lists = 1, .list_lists = 1});
    GiveWeights(&batch);
    CheckGradients(*engine, batch);
  }
}

TEST(EmbeddingGradientTest, WeightsInLinear) {
  GraphBuilder graph;
  const Node wide = graph.Linear({.tables = {{"t0", 0, 5}, {"t1", 1, 5}}, .bias_name = "bias"});
  const auto engine = std::move(graph).Finish(wide, NewBinaryHead()).value();
  auto batch = RandomBatch({.rows = 14, .one_per_row_lists = 1, .list_lists = 1});
  GiveWeights(&batch);
  CheckGradients(*engine, batch);
}

TEST(EmbeddingGradientTest, Poolings) {
  for (const Pooling pooling : kPoolings) {
    for (const double max_norm : {0.0, 0.6}) {
      SCOPED_TRACE(StrCat(static_cast<int>(pooling), " ", max_norm));
      GraphBuilder graph;
      EmbeddingOptions options = Table("e", 0);
      options.pooling = pooling;
      options.max_norm = max_norm;
      const auto engine = FinishedBags(std::move(graph), graph.EmbeddingBag(options));
      CheckGradients(*engine, RandomBatch({.rows = 21, .list_lists = 1}));
    }
  }
}

TEST(EmbeddingGradientTest, MaxNorm) {
  for (const Combiner combiner : kCombiners) {
    GraphBuilder graph;
    std::vector<Node> parts;
    for (const int list : {0, 1}) {
      EmbeddingOptions options = Table(StrCat("e", list), list);
      options.combiner = combiner;
      options.max_norm = 0.7;
      parts.push_back(graph.EmbeddingBag(options));
    }
    const auto engine = FinishedBags(std::move(graph), graph.Concat(parts));
    CheckGradients(*engine, RandomBatch({.rows = 14, .one_per_row_lists = 1, .list_lists = 1}));
  }
}

// One table for four features: one value per row, lists with weights, steps, and the first list
// again.
std::unique_ptr<Engine> NewShared(int threads, double max_norm = 0) {
  GraphBuilder graph;
  std::vector<EmbeddingOptions> bags = {Table("shared", 0), Table("shared", 1), Table("shared", 2),
                                        Table("shared", 0)};
  for (EmbeddingOptions& bag : bags) bag.max_norm = max_norm;
  bags[1].combiner = Combiner::kSqrtN;
  bags[2].pooling = Pooling::kMax;
  std::vector<Node> parts = graph.SharedEmbeddingBags(bags);
  parts.push_back(graph.EmbeddingBag(Table("own", 1)));
  return FinishedBags(std::move(graph), graph.Concat(parts), threads);
}

features::FeatureBatch SharedBatch() {
  auto batch = RandomBatch({.rows = 17, .one_per_row_lists = 1, .list_lists = 2});
  GiveWeights(&batch);
  batch.id_lists[0].weights.clear();
  batch.id_lists[2].weights.clear();
  return batch;
}

TEST(EmbeddingGradientTest, SharedTable) {
  for (const int threads : {1, 3}) {
    for (const double max_norm : {0.0, 0.7}) {
      CheckGradients(*NewShared(threads, max_norm), SharedBatch());
    }
  }
}

TEST(EmbeddingTest, SharedTableGivesDistinctRowsOnce) {
  const auto batch = SharedBatch();
  std::vector<int32_t> in_order;
  for (const int list : {0, 1, 2}) {
    for (const int32_t id : batch.id_lists[list].ids) {
      if (id >= 0 && std::find(in_order.begin(), in_order.end(), id) == in_order.end()) {
        in_order.push_back(id);
      }
    }
  }
  for (const int threads : {1, 2, 5}) {
    const auto engine = NewShared(threads);
    ASSERT_EQ(engine->variables().size(), 4);
    TestWeights weights(*engine);
    RecordingSink first(*engine), second(*engine);
    ASSERT_TRUE(engine->Step(weights.views(), batch, {}, first).ok());
    ASSERT_TRUE(engine->Step(weights.views(), batch, {}, second).ok());
    EXPECT_EQ(std::count(first.order.begin(), first.order.end(), "shared"), 1);
    EXPECT_EQ(first.rows["shared"], in_order);
    EXPECT_EQ(first.dense, second.dense);  // to the bit
  }
}

// The table has the size from which DistinctRowsFinder uses a hash table.
TEST(EmbeddingTest, SharedLargeTable) {
  GraphBuilder graph;
  EmbeddingOptions table{.name = "e", .id_list = 0, .rows = (1 << 22) + 1, .dimension = 1};
  EmbeddingOptions other = table;
  other.id_list = 1;
  const auto engine =
      FinishedBags(std::move(graph), graph.Concat(graph.SharedEmbeddingBags({table, other})));
  TestWeights weights(*engine);
  features::FeatureBatch batch;
  batch.rows = 2;
  batch.labels = {0, 1};
  batch.id_lists = {{.ids = {1 << 22, 3}}, {.ids = {3, -1}}};
  RecordingSink sink(*engine);
  ASSERT_TRUE(engine->Step(weights.views(), batch, {}, sink).ok());
  EXPECT_THAT(sink.rows["e"], ElementsAre(1 << 22, 3));
}

TEST(EmbeddingTest, RefusesBagsOfDifferentShapes) {
  GraphBuilder graph;
  EmbeddingOptions other = Table("e", 1);
  other.dimension = 4;
  const std::vector<Node> nodes = graph.SharedEmbeddingBags({Table("e", 0), other});
  const Node logits = graph.Dense(graph.Concat(nodes), {.name = "logits", .units = 1});
  EXPECT_THAT(std::string(std::move(graph).Finish(logits, NewBinaryHead()).status().message()),
              HasSubstr("e: bags that share it give it different shapes"));
}

TEST(EmbeddingTest, RefusesWeightsThatDoNotFit) {
  const auto engine = NewShared(1);
  auto batch = SharedBatch();
  batch.id_lists[1].weights.pop_back();
  TestWeights weights(*engine);
  RecordingSink sink(*engine);
  EXPECT_THAT(std::string(engine->Step(weights.views(), batch, {}, sink).status().message()),
              HasSubstr("weights for"));
}

}  // namespace
}  // namespace muster::engine::native
