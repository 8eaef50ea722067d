// Shared by the tests of this layer: random batches, and the engines that several tests use.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "muster/base/random.h"
#include "muster/engine/native/graph.h"
#include "muster/engine/test_support.h"

namespace muster::engine::native {

struct BatchShape {
  int rows = 7;
  std::vector<int> dense_widths = {};
  int one_per_row_lists = 0;  // these come first in id_lists
  int list_lists = 0;
  int table_rows = 5;
  bool weighted = false;
};

// Random columns; about one id in six is missing, lists have 0 to 3 ids.
inline features::FeatureBatch RandomBatch(const BatchShape& shape, uint64_t seed = 20250104) {
  RandomStream random(seed, RandomPurpose::kSampleData, 2);
  features::FeatureBatch batch;
  batch.rows = shape.rows;
  for (const int width : shape.dense_widths) {
    auto& column = batch.dense.emplace_back();
    column.width = width;
    for (int i = 0; i < shape.rows * width; ++i) {
      column.values.push_back(static_cast<float>(random.Normal()));
    }
  }
  const auto id = [&] {
    const bool missing = random.Below(6) == 0;
    return missing ? -1
                   : static_cast<int32_t>(random.Below(static_cast<uint64_t>(shape.table_rows)));
  };
  for (int i = 0; i < shape.one_per_row_lists; ++i) {
    auto& list = batch.id_lists.emplace_back();
    for (int row = 0; row < shape.rows; ++row) list.ids.push_back(id());
  }
  for (int i = 0; i < shape.list_lists; ++i) {
    auto& list = batch.id_lists.emplace_back();
    list.offsets.push_back(0);
    for (int row = 0; row < shape.rows; ++row) {
      for (uint64_t n = random.Below(4); n > 0; --n) list.ids.push_back(id());
      list.offsets.push_back(static_cast<uint32_t>(list.ids.size()));
    }
  }
  for (int row = 0; row < shape.rows; ++row) {
    batch.labels.push_back(static_cast<float>(random.Below(2)));
    if (shape.weighted) batch.weights.push_back(random.Uniform() * 2);
  }
  return batch;
}

inline BatchShape WideAndDeepShape(int rows = 23) {
  return {.rows = rows,
          .dense_widths = {2, 1},
          .one_per_row_lists = 2,
          .list_lists = 1,
          .table_rows = 9,
          .weighted = true};
}

// A model with every kind of layer.
inline std::unique_ptr<Engine> NewWideAndDeep(int threads) {
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

// A linear model with one table, t0, of 9 rows.
inline std::unique_ptr<Engine> NewLinear() {
  GraphBuilder graph;
  const Node logits = graph.Linear({.tables = {{"t0", 0, 9}}});
  return std::move(graph).Finish(logits, NewBinaryHead()).value();
}

inline features::FeatureBatch IdBatch(std::vector<int32_t> ids) {
  features::FeatureBatch batch;
  batch.rows = static_cast<int>(ids.size());
  batch.labels.assign(ids.size(), 0);
  batch.id_lists.push_back({.ids = std::move(ids), .offsets = {}});
  return batch;
}

}  // namespace muster::engine::native
