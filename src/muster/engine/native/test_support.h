// For the tests of this layer: weights of an engine, a sink that records, random batches.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/random.h"
#include "muster/engine/engine.h"
#include "muster/engine/native/graph.h"

namespace muster::engine::native {

// An engine's variables, filled with normal numbers (variances: positive).
class TestWeights {
 public:
  explicit TestWeights(const Engine& engine, double scale = 0.5) : specs_(engine.variables()) {
    RandomStream random(20250103, RandomPurpose::kInitialWeights, 1);
    for (const VariableSpec& spec : specs_) {
      auto& memory = memories_.emplace_back(static_cast<size_t>(spec.elements()));
      for (float& w : memory) {
        w = static_cast<float>(scale * random.Normal());
        if (spec.kind == VariableKind::kState) w = std::fabs(w) + 0.5f;
      }
      const int64_t cols = spec.shape.size() == 2 ? spec.shape[1] : 1;
      views_.push_back({memory.data(), spec.shape[0], cols});
    }
  }

  std::span<const VariableView> views() const { return views_; }
  std::vector<VariableView>& mutable_views() { return views_; }
  std::vector<float>& operator[](std::string_view name) { return memories_[IndexOf(name)]; }
  std::vector<float>& at(size_t variable) { return memories_[variable]; }
  size_t IndexOf(std::string_view name) const {
    for (size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i].name == name) return i;
    }
    return specs_.size();
  }

 private:
  std::span<const VariableSpec> specs_;
  std::vector<std::vector<float>> memories_;
  std::vector<VariableView> views_;
};

// Keeps what a step gives. Table gradients are also spread out to dense ones.
class RecordingSink final : public GradientSink {
 public:
  explicit RecordingSink(const Engine& engine) : specs_(engine.variables()) {}

  void Dense(int variable, std::span<const float> gradient) override {
    const std::string& name = Called(variable);
    dense[name].assign(gradient.begin(), gradient.end());
  }
  void Rows(int variable, std::span<const int32_t> given_rows,
            std::span<const float> gradient) override {
    const std::string& name = Called(variable);
    const VariableSpec& spec = specs_[static_cast<size_t>(variable)];
    rows[name].assign(given_rows.begin(), given_rows.end());
    auto& spread = dense[name];
    spread.assign(static_cast<size_t>(spec.elements()), 0);
    const auto cols = static_cast<size_t>(spec.shape[1]);
    for (size_t i = 0; i < given_rows.size() * cols; ++i) {
      spread[static_cast<size_t>(given_rows[i / cols]) * cols + i % cols] = gradient[i];
    }
  }
  void Statistic(int variable, std::span<const float> value) override {
    statistics[Called(variable)].assign(value.begin(), value.end());
  }

  std::vector<std::string> order;  // of the calls
  std::map<std::string, std::vector<float>, std::less<>> dense, statistics;
  std::map<std::string, std::vector<int32_t>, std::less<>> rows;

 private:
  const std::string& Called(int variable) {
    return order.emplace_back(specs_[static_cast<size_t>(variable)].name);
  }

  std::span<const VariableSpec> specs_;
};

struct BatchShape {
  int rows = 7;
  std::vector<int> dense_widths = {};
  int one_per_row_lists = 0;  // first in id_lists
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

// Every layer there is.
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

// One table t0 of 9 rows.
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
