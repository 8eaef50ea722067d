// Compares every layer's backward pass with central differences of its forward pass.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/random.h"
#include "muster/engine/native/gradient_check.h"
#include "muster/engine/native/graph.h"

namespace muster::engine::native {
namespace {

const Initializer kNormal{Initializer::Kind::kTruncatedNormal, 1};

std::unique_ptr<Engine> Finished(GraphBuilder&& graph, Node logits, int threads = 1) {
  auto engine = std::move(graph).Finish(logits, NewBinaryHead(), {.threads = threads});
  EXPECT_TRUE(engine.ok()) << engine.status();
  return *std::move(engine);
}

using Compose = std::function<Node(GraphBuilder&)>;

// Checks the gradients of the network whose logits `compose` adds, for a random batch of this
// shape.
void CheckNetwork(const BatchShape& shape, const Compose& compose, double scale = 0.5,
                  int threads = 1) {
  GraphBuilder graph;
  const Node logits = compose(graph);
  const auto engine = Finished(std::move(graph), logits, threads);
  CheckGradients(*engine, RandomBatch(shape), scale);
}

void CheckOnOneAndThreeThreads(const BatchShape& shape, const Compose& compose,
                               double scale = 0.5) {
  for (const int threads : {1, 3}) {
    SCOPED_TRACE(StrCat(threads, " threads"));
    CheckNetwork(shape, compose, scale, threads);
  }
}

// A batch for two bags or linear tables, the second one of lists, and two dense columns.
BatchShape MixedShape(int rows) {
  return {
      .rows = rows, .dense_widths = {2}, .one_per_row_lists = 1, .list_lists = 1, .weighted = true};
}

// Options of the embedding e0 or e1, which reads id list 0 or 1.
EmbeddingOptions Bag(int list, int dimension, Initializer initializer = {}) {
  return {.name = StrCat("e", list),
          .id_list = list,
          .rows = 5,
          .dimension = dimension,
          .initializer = initializer};
}

LinearOptions WideOptions() {
  return {.tables = {{"t0", 0, 5}, {"t1", 1, 5}}, .bias_name = "bias"};
}

// Gives the batch labels that a head of this kind can learn from.
void GiveLabels(const HeadSpec& head, features::FeatureBatch* batch) {
  RandomStream random(20261121, RandomPurpose::kSampleData, 3);
  batch->labels.clear();
  for (int i = 0; i < batch->rows * head.labels_dimension(); ++i) {
    float label = static_cast<float>(random.Below(2));
    if (head.kind == "multi_class") {
      label = static_cast<float>(random.Below(static_cast<uint64_t>(head.classes)));
    } else if (head.kind == "regression") {
      label = static_cast<float>(random.Below(40) + 1) / 8;
      if (head.loss == "logistic") label /= 5;
    }
    batch->labels.push_back(label);
  }
}

// Adds a dense layer with a single logit.
Node Logits(GraphBuilder& graph, Node node) {
  return graph.Dense(node, {.name = "logits", .units = 1});
}

TEST(GradientTest, Dense) {
  for (const Activation activation :
       {Activation::kNone, Activation::kRelu, Activation::kTanh, Activation::kSigmoid}) {
    SCOPED_TRACE(static_cast<int>(activation));
    CheckNetwork({.rows = 9, .dense_widths = {3}}, [&](GraphBuilder& graph) {
      Node x = graph.DenseInput(0, 3);
      x = graph.Dense(x, {.name = "a", .units = 5, .activation = activation});
      x = graph.Dense(x, {.name = "b", .units = 4, .activation = activation, .bias = false});
      return Logits(graph, x);
    });
  }
}

TEST(GradientTest, WeightedRowsAndGivenDenominator) {
  CheckNetwork({.rows = 9, .dense_widths = {3}, .weighted = true}, [](GraphBuilder& graph) {
    return Logits(graph, graph.Dense(graph.DenseInput(0, 3), {.name = "a", .units = 5}));
  });
}

TEST(GradientTest, Regularization) {
  CheckNetwork({.rows = 9, .dense_widths = {3}}, [](GraphBuilder& graph) {
    const Node x = graph.DenseInput(0, 3);
    return Logits(graph, graph.Dense(x, {.name = "a", .units = 4, .l1 = 0.1, .l2 = 0.2}));
  });
}

TEST(GradientTest, RegularizationOfTables) {
  for (const double max_norm : {0.0, 0.5}) {
    GraphBuilder graph;
    const Node bag = graph.EmbeddingBag({.name = "e",
                                         .id_list = 0,
                                         .rows = 7,
                                         .dimension = 3,
                                         .max_norm = max_norm,
                                         .l1 = 0.1,
                                         .l2 = 0.2,
                                         .initializer = kNormal});
    const auto engine = Finished(std::move(graph), Logits(graph, bag));
    const auto batch = RandomBatch({.rows = 4, .list_lists = 1});
    CheckGradients(*engine, batch);
    // Rows that the batch does not name have a gradient too.
    TestWeights weights(*engine);
    RecordingSink sink(*engine);
    ASSERT_TRUE(engine->Step(weights.views(), batch, {}, sink).ok());
    EXPECT_FALSE(sink.rows.contains("e"));
    EXPECT_EQ(std::count(sink.dense["e"].begin(), sink.dense["e"].end(), 0.0f), 0);
  }
}

TEST(GradientTest, EmbeddingWithEachCombiner) {
  for (const auto combiner :
       {features::Combiner::kSum, features::Combiner::kMean, features::Combiner::kSqrtN}) {
    SCOPED_TRACE(static_cast<int>(combiner));
    for (const int dimension : {3, 8}) {
      CheckNetwork({.rows = 12, .one_per_row_lists = 1, .list_lists = 1}, [&](GraphBuilder& graph) {
        std::vector<Node> parts;
        for (int list = 0; list < 2; ++list) {
          EmbeddingOptions bag = Bag(list, dimension, kNormal);
          bag.combiner = combiner;
          parts.push_back(graph.EmbeddingBag(bag));
        }
        return Logits(graph, graph.Concat(parts));
      });
    }
  }
}

TEST(GradientTest, Linear) {
  CheckNetwork({.rows = 12, .dense_widths = {1, 3}, .one_per_row_lists = 1, .list_lists = 1},
               [](GraphBuilder& graph) {
                 LinearOptions linear = WideOptions();
                 linear.dense = {{"d0", 0, 1}, {"d1", 1, 3}};
                 return graph.Linear(linear);
               });
}

// Gradients go through a linear and a dense layer with as many units as the head has logits; rows
// are weighted.
TEST(GradientTest, EveryHead) {
  const HeadSpec heads[] = {
      {.kind = "binary"},
      {.kind = "multi_class", .classes = 4},
      {.kind = "multi_label", .classes = 3},
      {.kind = "regression"},
      {.kind = "regression", .label_dimension = 3},
      {.kind = "regression", .loss = "poisson", .label_dimension = 2},
      {.kind = "regression", .loss = "log_normal", .label_dimension = 2},
      {.kind = "regression", .loss = "logistic", .label_dimension = 2},
  };
  for (const HeadSpec& head : heads) {
    SCOPED_TRACE(StrCat(head.kind, " ", head.loss, " ", head.label_dimension));
    for (const int threads : {1, 3}) {
      GraphBuilder graph;
      const int units = head.logits_dimension();
      LinearOptions wide = WideOptions();
      wide.dense = {{"d0", 0, 1}, {"d1", 1, 3}};
      wide.units = units;
      const Node linear = graph.Linear(wide);
      const Node dense = graph.Dense(graph.DenseInput(1, 3), {.name = "logits", .units = units});
      auto engine =
          std::move(graph).Finish(graph.Add(dense, linear), NewHead(head), {.threads = threads});
      ASSERT_TRUE(engine.ok()) << engine.status();
      auto batch = RandomBatch({.rows = 24,
                                .dense_widths = {1, 3},
                                .one_per_row_lists = 1,
                                .list_lists = 1,
                                .weighted = true});
      GiveLabels(head, &batch);
      CheckGradients(**engine, batch, 0.3);
    }
  }
}

TEST(GradientTest, BatchNorm) {
  CheckNetwork({.rows = 11, .dense_widths = {3}}, [](GraphBuilder& graph) {
    // No bias: its gradient would be 0, since the mean is subtracted.
    Node x = graph.Dense(graph.DenseInput(0, 3), {.name = "a", .units = 4, .bias = false});
    x = graph.BatchNorm(x, {.name = "norm"});
    return Logits(graph, graph.Activate(x, Activation::kTanh));
  });
}

TEST(GradientTest, BatchNormOfInputs) {
  CheckNetwork({.rows = 11, .dense_widths = {3}, .one_per_row_lists = 1}, [](GraphBuilder& graph) {
    const Node x = graph.Concat({graph.DenseInput(0, 3), graph.EmbeddingBag(Bag(0, 2))});
    return Logits(graph, graph.BatchNorm(x, {.name = "n"}));
  });
}

TEST(GradientTest, Dropout) {
  CheckNetwork({.rows = 9, .dense_widths = {3}}, [](GraphBuilder& graph) {
    const Node x = graph.Dense(graph.DenseInput(0, 3), {.name = "a", .units = 8});
    return Logits(graph, graph.Dropout(x, 0.4));
  });
}

TEST(GradientTest, Activations) {
  for (const Activation activation :
       {Activation::kNone, Activation::kRelu, Activation::kTanh, Activation::kSigmoid}) {
    CheckNetwork({.rows = 9, .dense_widths = {3}}, [&](GraphBuilder& graph) {
      const Node x = graph.Dense(graph.DenseInput(0, 3), {.name = "a", .units = 6});
      return Logits(graph, graph.Activate(x, activation));
    });
  }
}

// A node with several readers, one of them a Concat: gradients add up.
TEST(GradientTest, NodesReadTwice) {
  CheckNetwork({.rows = 11, .dense_widths = {3}}, [](GraphBuilder& graph) {
    const Node input = graph.DenseInput(0, 3);
    const Node a = graph.Dense(input, {.name = "a", .units = 4, .activation = Activation::kRelu});
    const Node b = graph.Dense(a, {.name = "b", .units = 4, .activation = Activation::kRelu});
    const Node c = graph.Dense(input, {.name = "c", .units = 2, .activation = Activation::kTanh});
    const Node sum = graph.Add(a, b);
    const Node dropped = graph.Dropout(c, 0.2), normal = graph.BatchNorm(c, {.name = "n"});
    const Node all =
        graph.Concat({graph.Activate(c, Activation::kSigmoid), c, sum, dropped, normal});
    return Logits(graph, all);
  });
}

// Concat of Concats; inputs that need no gradient before, between and after those that do.
TEST(GradientTest, NestedConcat) {
  CheckNetwork(
      {.rows = 9, .dense_widths = {3, 2}, .one_per_row_lists = 1}, [](GraphBuilder& graph) {
        const Node inner = graph.Concat(
            {graph.DenseInput(0, 3), graph.EmbeddingBag(Bag(0, 8)), graph.DenseInput(1, 2)});
        const Node relu = graph.Dense(graph.DenseInput(1, 2),
                                      {.name = "r", .units = 3, .activation = Activation::kRelu});
        const Node outer = graph.Concat({graph.DenseInput(1, 2), inner, relu});
        const Node hidden =
            graph.Dense(outer, {.name = "h", .units = 6, .activation = Activation::kTanh});
        return Logits(graph, hidden);
      });
}

// The fields are those that only the machine reads, and one that a dense layer computes from
// numbers.
TEST(GradientTest, FactorizationMachine) {
  CheckOnOneAndThreeThreads(MixedShape(13), [](GraphBuilder& graph) {
    std::vector<Node> fields = {graph.EmbeddingBag(Bag(0, 3, kNormal)),
                                graph.EmbeddingBag(Bag(1, 3, kNormal))};
    fields.push_back(graph.Dense(graph.DenseInput(0, 2), {.name = "v", .units = 3, .bias = false}));
    return graph.FactorizationMachine(fields);
  });
}

// Compares the machine's value with the sum over pairs.
TEST(FactorizationMachineTest, IsTheSumOverPairs) {
  GraphBuilder graph;
  std::vector<Node> fields = {graph.DenseInput(0, 3), graph.DenseInput(1, 3),
                              graph.DenseInput(2, 3), graph.DenseInput(3, 3)};
  const auto engine = Finished(std::move(graph), graph.FactorizationMachine(fields));
  const auto batch = RandomBatch({.rows = 6, .dense_widths = {3, 3, 3, 3}});
  Forward out;
  ASSERT_TRUE(engine->Predict({}, batch, &out).ok());
  for (int row = 0; row < batch.rows; ++row) {
    double expected = 0;
    for (size_t i = 0; i < fields.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        for (int d = 0; d < 3; ++d) {
          const auto at = static_cast<size_t>(row * 3 + d);
          expected += double{batch.dense[i].values[at]} * batch.dense[j].values[at];
        }
      }
    }
    EXPECT_NEAR(out.logits[static_cast<size_t>(row)], expected, 1e-5) << row;
  }
}

// DeepFM: the deep tower reads the same embeddings.
TEST(GradientTest, DeepFactorizationMachine) {
  CheckOnOneAndThreeThreads(MixedShape(17), [](GraphBuilder& graph) {
    const Node a = graph.EmbeddingBag(Bag(0, 4));
    const Node b = graph.EmbeddingBag(Bag(1, 4));
    Node x = graph.Concat({graph.DenseInput(0, 2), a, b});
    x = graph.Dense(x, {.name = "h", .units = 6, .activation = Activation::kTanh});
    const Node deep = graph.Add(Logits(graph, x), graph.FactorizationMachine({a, b}));
    return graph.Add(deep, graph.Linear(WideOptions()));
  });
}

// Full and low rank, stacked and in parallel; inputs that need no gradient beside those that do.
TEST(GradientTest, CrossNetwork) {
  for (const int rank : {0, 2}) {
    for (const bool parallel : {false, true}) {
      SCOPED_TRACE(StrCat("rank ", rank, parallel ? ", parallel" : ""));
      const auto compose = [&](GraphBuilder& graph) {
        const Node x0 = graph.Concat(
            {graph.DenseInput(0, 2), graph.EmbeddingBag(Bag(0, 3)), graph.DenseInput(1, 1)});
        Node x = x0;
        for (int i = 0; i < 2; ++i) {
          x = graph.Cross(x0, x, {.name = StrCat("cross_", i), .rank = rank, .l2 = 0.01});
        }
        const DenseOptions hidden{.name = "h", .units = 5, .activation = Activation::kTanh};
        x = parallel ? graph.Concat({x, graph.Dense(x0, hidden)}) : graph.Dense(x, hidden);
        return Logits(graph, x);
      };
      CheckOnOneAndThreeThreads({.rows = 13, .dense_widths = {2, 1}, .one_per_row_lists = 1},
                                compose, 0.4);
    }
  }
}

// Two towers: each row is compared with all others of the batch, weighted by rewards.
TEST(GradientTest, InBatchSoftmax) {
  for (const int threads : {1, 3}) {
    for (const bool corrected : {false, true}) {
      SCOPED_TRACE(StrCat(threads, " threads", corrected ? ", corrected" : ""));
      const HeadSpec head{.kind = "in_batch_softmax",
                          .vector_size = 3,
                          .temperature = 0.5,
                          .sampling_probability = corrected ? "p" : ""};
      GraphBuilder graph;
      std::vector<Node> vectors;
      for (int list = 0; list < 2; ++list) {
        const Node bag = graph.EmbeddingBag(Bag(list, 4, kNormal));
        // The item tower has no bias: its gradient would be 0, since it changes all scores of a
        // query alike.
        const Node vector =
            graph.Dense(bag, {.name = StrCat("vector", list), .units = 3, .bias = list == 0});
        vectors.push_back(list == 0 ? graph.L2Normalize(vector) : vector);
      }
      if (corrected) vectors.push_back(graph.DenseInput(0, 1));
      auto engine =
          std::move(graph).Finish(graph.Concat(vectors), NewHead(head), {.threads = threads});
      ASSERT_TRUE(engine.ok()) << engine.status();
      auto batch =
          RandomBatch({.rows = 19, .dense_widths = {1}, .one_per_row_lists = 2, .weighted = true});
      for (float& p : batch.dense[0].values) p = std::min(1.0f, std::fabs(p) / 3 + 0.01f);
      CheckGradients(**engine, batch);
    }
  }
}

// All layers together, on one thread and on three.
TEST(GradientTest, WideAndDeep) {
  CheckOnOneAndThreeThreads(MixedShape(17), [](GraphBuilder& graph) {
    Node x = graph.Concat(
        {graph.DenseInput(0, 2), graph.EmbeddingBag(Bag(0, 8)), graph.EmbeddingBag(Bag(1, 3))});
    x = graph.BatchNorm(x, {.name = "n0"});
    x = graph.Dense(x, {.name = "h0", .units = 6, .activation = Activation::kRelu, .l2 = 0.01});
    x = graph.BatchNorm(x, {.name = "n1"});
    x = graph.Dropout(x, 0.3);
    x = graph.Dense(x, {.name = "h1", .units = 4, .activation = Activation::kTanh});
    LinearOptions wide = WideOptions();
    wide.dense = {{"d", 0, 2}};
    const Node deep = Logits(graph, x);
    return graph.Add(deep, graph.Linear(wide));
  });
}

}  // namespace
}  // namespace muster::engine::native
