#include "muster/engine/engine_conformance.h"

#include "muster/engine/native/test_support.h"

namespace muster::engine::native {
namespace {

absl::StatusOr<std::unique_ptr<Engine>> MakeLinear(int threads) {
  GraphBuilder graph;
  const Node logits = graph.Linear({.tables = {{"t0", 0, 9}, {"t1", 1, 9}, {"t2", 2, 9}},
                                    .dense = {{"d0", 0, 2}, {"d1", 1, 1}},
                                    .bias_name = "bias"});
  return std::move(graph).Finish(logits, NewBinaryHead(), {.threads = threads});
}

// A network with bags of every combiner, two of them over one table; only a row's own values matter
// to its loss.
absl::StatusOr<std::unique_ptr<Engine>> MakeDnn(int threads) {
  GraphBuilder graph;
  std::vector<Node> parts =
      graph.SharedEmbeddingBags({{.name = "shared", .id_list = 0, .rows = 9, .dimension = 3},
                                 {.name = "shared", .id_list = 2, .rows = 9, .dimension = 3}});
  parts.push_back(graph.EmbeddingBag({.name = "sum",
                                      .id_list = 2,
                                      .rows = 9,
                                      .dimension = 8,
                                      .combiner = features::Combiner::kSum}));
  parts.push_back(graph.EmbeddingBag({.name = "sqrtn",
                                      .id_list = 1,
                                      .rows = 12,
                                      .dimension = 2,
                                      .combiner = features::Combiner::kSqrtN}));
  parts.push_back(graph.DenseInput(0, 2));
  Node x = graph.Dense(
      graph.Concat(parts),
      {.name = "h0", .units = 20, .activation = Activation::kRelu, .l1 = 0.001, .l2 = 0.01});
  x = graph.Dense(x, {.name = "h1", .units = 7, .activation = Activation::kTanh});
  return std::move(graph).Finish(graph.Dense(x, {.name = "logits", .units = 1}), NewBinaryHead(),
                                 {.threads = threads});
}

// A model that folds its tables into the dense layer when it predicts with frozen weights.
absl::StatusOr<std::unique_ptr<Engine>> MakeFoldable(int threads) {
  GraphBuilder graph;
  const Node x =
      graph.Concat({graph.EmbeddingBag({.name = "a", .id_list = 0, .rows = 9, .dimension = 8}),
                    graph.DenseInput(0, 2),
                    graph.EmbeddingBag({.name = "b", .id_list = 1, .rows = 9, .dimension = 4})});
  const Node h = graph.Dense(x, {.name = "h", .units = 21, .activation = Activation::kTanh});
  return std::move(graph).Finish(graph.Dense(h, {.name = "logits", .units = 1}), NewBinaryHead(),
                                 {.threads = threads});
}

absl::StatusOr<std::unique_ptr<Engine>> MakeNormalized(int threads) {
  GraphBuilder graph;
  Node x =
      graph.Concat({graph.DenseInput(0, 2),
                    graph.EmbeddingBag({.name = "e", .id_list = 2, .rows = 9, .dimension = 4})});
  x = graph.BatchNorm(x, {.name = "n0", .synchronized = true});
  x = graph.Dense(x, {.name = "h", .units = 5, .activation = Activation::kTanh});
  x = graph.BatchNorm(x, {.name = "n1", .synchronized = true});
  return std::move(graph).Finish(graph.Dense(x, {.name = "logits", .units = 1}), NewBinaryHead(),
                                 {.threads = threads});
}

// DeepFM whose tower is a cross network: all layers that multiply the outputs of others.
absl::StatusOr<std::unique_ptr<Engine>> MakeInteractions(int threads) {
  GraphBuilder graph;
  const Node a = graph.EmbeddingBag({.name = "a", .id_list = 0, .rows = 9, .dimension = 4});
  const Node b = graph.EmbeddingBag({.name = "b", .id_list = 2, .rows = 9, .dimension = 4});
  const Node x0 = graph.Concat({graph.DenseInput(0, 2), a, b});
  Node x = graph.Cross(x0, x0, {.name = "c0"});
  x = graph.Cross(x0, x, {.name = "c1", .rank = 2, .l2 = 0.01});
  x = graph.Concat({x, graph.Dense(x0, {.name = "h", .units = 5})});
  const Node deep = graph.Dense(x, {.name = "logits", .units = 1});
  return std::move(graph).Finish(graph.Add(deep, graph.FactorizationMachine({a, b})),
                                 NewBinaryHead(), {.threads = threads});
}

// A model where the loss of a row depends on the other rows.
absl::StatusOr<std::unique_ptr<Engine>> MakeTwoTower(int threads) {
  GraphBuilder graph;
  std::vector<Node> vectors;
  for (int list = 0; list < 2; ++list) {
    const Node bag =
        graph.EmbeddingBag({.name = StrCat("e", list), .id_list = list, .rows = 9, .dimension = 4});
    vectors.push_back(graph.L2Normalize(graph.Dense(bag, {.name = StrCat("v", list), .units = 3})));
  }
  return std::move(graph).Finish(
      graph.Concat(vectors),
      NewHead({.kind = "in_batch_softmax", .vector_size = 3, .temperature = 0.5}),
      {.threads = threads});
}

EngineMember Member(const std::string& name, int threads,
                    const std::function<absl::StatusOr<std::unique_ptr<Engine>>(int)>& make) {
  return {.name = StrCat(name, threads),
          .make = [make, threads] { return make(threads); },
          .batch = [] { return RandomBatch(WideAndDeepShape()); }};
}

std::vector<EngineMember> Members() {
  std::vector<EngineMember> members;
  for (const int threads : {1, 3}) {
    members.push_back(Member("Linear", threads, MakeLinear));
    members.push_back(Member("Dnn", threads, MakeDnn));
    members.push_back(Member("Foldable", threads, MakeFoldable));
    members.push_back(Member("Interactions", threads, MakeInteractions));
    members.push_back(Member("TwoTower", threads, MakeTwoTower));
    members.back().is_separable = false;
    members.push_back(Member("Normalized", threads, MakeNormalized));
    members.back().batch_norm = EngineMember::BatchNorm::kSynchronized;
    members.push_back(Member("WideAndDeep", threads, NewWideAndDeep));
    members.back().is_random = true;
    members.back().batch_norm = EngineMember::BatchNorm::kOwnRows;
  }
  return members;
}

INSTANTIATE_TEST_SUITE_P(Native, EngineConformance, testing::ValuesIn(Members()), EngineMemberName);

}  // namespace
}  // namespace muster::engine::native
