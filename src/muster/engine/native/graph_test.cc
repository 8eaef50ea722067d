#include "muster/engine/native/graph.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::engine::native {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Status FinishStatus(GraphBuilder&& graph, Node logits, EngineOptions options = {}) {
  return std::move(graph).Finish(logits, NewBinaryHead(), options).status();
}

void ExpectInvalid(const absl::Status& status, const std::string& message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(GraphBuilderTest, VariablesInTheOrderOfTheCalls) {
  GraphBuilder graph;
  const Node e = graph.EmbeddingBag({.name = "e",
                                     .rows = 10,
                                     .dimension = 4,
                                     .initializer = {Initializer::Kind::kTruncatedNormal, 0.5},
                                     .group = 1});
  Node x = graph.Concat({graph.DenseInput(0, 3), e});
  x = graph.BatchNorm(x, {.name = "n", .momentum = 0.9});
  const Node logits = graph.Dense(x, {.name = "d", .units = 1, .group = 2});
  const Node linear = graph.Linear({.tables = {{"t", 0, 10}}, .bias_name = "b", .group = 3});
  auto engine = std::move(graph).Finish(graph.Add(logits, linear), NewBinaryHead());
  ASSERT_TRUE(engine.ok()) << engine.status();
  std::vector<std::string> names;
  for (const VariableSpec& spec : (*engine)->variables()) names.push_back(spec.name);
  EXPECT_THAT(names, ElementsAre("e", "n/gamma", "n/beta", "n/moving_mean", "n/moving_variance",
                                 "d/kernel", "d/bias", "t", "b"));
  const auto variables = (*engine)->variables();
  EXPECT_EQ(variables[0].kind, VariableKind::kTable);
  EXPECT_THAT(variables[0].shape, ElementsAre(10, 4));
  EXPECT_EQ(variables[0].elements(), 40);
  EXPECT_EQ(variables[0].initializer.value, 0.5);
  EXPECT_EQ(variables[0].group, 1);
  EXPECT_EQ(variables[1].initializer.value, 1);
  EXPECT_EQ(variables[4].kind, VariableKind::kState);
  EXPECT_EQ(variables[4].momentum, 0.9);
  EXPECT_EQ(variables[4].initializer.value, 1);
  EXPECT_THAT(variables[5].shape, ElementsAre(7, 1));
  EXPECT_EQ(variables[5].initializer.kind, Initializer::Kind::kGlorotUniform);
  EXPECT_EQ(variables[7].group, 3);
  EXPECT_EQ((*engine)->logits_dimension(), 1);
}

TEST(GraphBuilderTest, TellsItsLayers) {
  GraphBuilder graph;
  const Node age = graph.DenseInput(3, 2, "in/age");
  const Node bag = graph.EmbeddingBag({.name = "in/city/table",
                                       .id_list = 1,
                                       .rows = 10,
                                       .dimension = 4,
                                       .combiner = features::Combiner::kSqrtN});
  Node x = graph.Concat({age, bag});
  x = graph.Dense(x, {.name = "h", .units = 5, .activation = Activation::kRelu});
  x = graph.Dropout(x, 0.25);
  const Node deep = graph.Dense(x, {.name = "out", .units = 1, .bias = false});
  const Node wide = graph.Linear(
      {.tables = {{"t", 1, 10}}, .dense = {{"w", 3, 2}}, .bias_name = "b", .name = "wide"});
  const auto engine = std::move(graph).Finish(graph.Add(deep, wide), NewBinaryHead());
  ASSERT_TRUE(engine.ok()) << engine.status();
  std::vector<std::string> names;
  for (const LayerInfo& layer : (*engine)->layers()) names.push_back(layer.name);
  EXPECT_THAT(names, ElementsAre("in/age", "in/city/EmbeddingBag", "in/Concat", "h/Dense",
                                 "h/Dropout", "out/Dense", "wide/Linear", "Add"));
  const auto layers = (*engine)->layers();
  EXPECT_EQ(layers[0].op, "DenseInput");
  EXPECT_THAT(layers[0].dense, ElementsAre(3));
  EXPECT_THAT(layers[1].id_lists, ElementsAre(1));
  EXPECT_THAT(layers[1].variables, ElementsAre(0));
  EXPECT_THAT(layers[1].attributes, ElementsAre(std::pair("combiner", "sqrtn")));
  EXPECT_THAT(layers[2].layers, ElementsAre(0, 1));
  EXPECT_EQ(layers[2].width, 6);
  EXPECT_THAT(layers[3].layers, ElementsAre(2));
  EXPECT_THAT(layers[3].variables, ElementsAre(1, 2));
  EXPECT_THAT(layers[3].attributes, ElementsAre(std::pair("activation", "relu")));
  EXPECT_THAT(layers[4].attributes, ElementsAre(std::pair("rate", "0.25")));
  EXPECT_THAT(layers[5].variables, ElementsAre(3));
  EXPECT_THAT(layers[6].variables, ElementsAre(4, 5, 6));
  EXPECT_THAT(layers[6].id_lists, ElementsAre(1));
  EXPECT_THAT(layers[6].dense, ElementsAre(3));
  EXPECT_THAT(layers[7].layers, ElementsAre(5, 6));
}

TEST(GraphBuilderTest, ErrorsNameWhatIsWrong) {
  {
    GraphBuilder graph;
    const Node x = graph.DenseInput(0, 2);
    const Node a = graph.Dense(x, {.name = "same", .units = 1});
    const Node b = graph.Dense(x, {.name = "same", .units = 1});
    ExpectInvalid(FinishStatus(std::move(graph), graph.Add(a, b)),
                  "the variable name same/kernel is given twice");
  }
  {
    GraphBuilder graph;
    const Node x = graph.DenseInput(0, 2);
    const Node a = graph.Dense(x, {.name = "a", .units = 2});
    const Node b = graph.Dense(x, {.name = "b", .units = 3});
    ExpectInvalid(FinishStatus(std::move(graph), graph.Add(a, b)), "Add: a has 2 columns, b has 3");
  }
  {
    GraphBuilder graph;
    const Node none = graph.Dense(graph.DenseInput(0, 2), {.name = "a", .units = 0});
    ExpectInvalid(FinishStatus(std::move(graph), none), "a: 0 units");
  }
  {
    GraphBuilder graph;
    const Node a = graph.Dense(graph.DenseInput(0, 2), {.name = "a", .units = 1});
    graph.Dense(graph.DenseInput(1, 2), {.name = "lost", .units = 1});
    ExpectInvalid(FinishStatus(std::move(graph), a), "lost is not used");
  }
  {
    GraphBuilder graph;
    const Node x = graph.DenseInput(0, 2), y = graph.DenseInput(1, 2);
    const Node one = graph.Concat({x, y});
    ExpectInvalid(FinishStatus(std::move(graph), graph.Concat({one, x})),
                  "DenseInput 0 is in a Concat already");
  }
  {
    GraphBuilder graph;
    const Node x = graph.DenseInput(0, 2);
    ExpectInvalid(FinishStatus(std::move(graph), graph.Concat({x, x})),
                  "DenseInput 0 is in a Concat already");
  }
  {
    GraphBuilder graph;
    const Node a = graph.Dense(graph.DenseInput(0, 2), {.name = "a", .units = 2});
    ExpectInvalid(FinishStatus(std::move(graph), a), "the logits have 2 columns, the head needs 1");
  }
  {
    GraphBuilder graph;
    const Node a = graph.Dense(graph.DenseInput(0, 2), {.name = "a", .units = 1});
    graph.Dense(a, {.name = "b", .units = 1});
    ExpectInvalid(FinishStatus(std::move(graph), a), "the logits are an input of another layer");
  }
  {
    GraphBuilder graph;
    ExpectInvalid(FinishStatus(std::move(graph), graph.Dense(7, {.name = "a", .units = 1})),
                  "a: there is no node 7");
  }
  {
    GraphBuilder graph;
    const Node a = graph.Dense(graph.DenseInput(0, 2), {.name = "a", .units = 1});
    ExpectInvalid(FinishStatus(std::move(graph), graph.Dropout(a, 1.0)), "rate 1 is not in [0, 1)");
  }
  {
    GraphBuilder graph;
    const Node e = graph.EmbeddingBag({.name = "e", .rows = 0, .dimension = 1});
    ExpectInvalid(FinishStatus(std::move(graph), e), "e: 0 rows");
  }
  {
    GraphBuilder graph;
    ExpectInvalid(FinishStatus(std::move(graph), graph.Linear({})), "Linear: no tables");
  }
  {
    GraphBuilder graph;
    const Node a = graph.Dense(graph.DenseInput(0, 2), {.name = "a", .units = 1});
    ExpectInvalid(FinishStatus(std::move(graph), a, {.threads = 0}), "0 threads");
  }
  {
    GraphBuilder graph;
    ExpectInvalid(FinishStatus(std::move(graph), graph.DenseInput(-1, 2)), "dense column -1");
  }
}

}  // namespace
}  // namespace muster::engine::native
