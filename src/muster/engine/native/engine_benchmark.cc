// Measures a training step in memory: engine and optimizers on one thread, samples per second of
// CPU time.
//
// The model is the Adult-like wide & deep of bench/: 5 numeric columns and 9 embeddings of 8 into
// 100-75-50-25 (Adagrad), 12 linear tables of 1000 rows (FTRL); "large" is 13 numeric columns and
// 26 embeddings of 32 into 1024-512-256.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "muster/base/random.h"
#include "muster/engine/native/graph.h"
#include "muster/math/vector.h"

namespace muster::engine::native {
namespace {

struct ModelShape {
  int numeric, categorical, crosses, dimension;
  std::vector<int> hidden;
  bool normalized = false;  // BatchNorm before each hidden layer's relu, dropout 0.2 after it
};

constexpr int kTableRows = 1000;
constexpr int kDeepGroup = 0, kLinearGroup = 1;

std::unique_ptr<Engine> WideAndDeep(const ModelShape& shape, int threads) {
  GraphBuilder graph;
  std::vector<Node> parts;
  for (int i = 0; i < shape.numeric; ++i) parts.push_back(graph.DenseInput(i, 1));
  LinearOptions linear{.bias_name = "linear/bias", .group = kLinearGroup};
  for (int i = 0; i < shape.categorical + shape.crosses; ++i) {
    if (i < shape.categorical) {
      parts.push_back(graph.EmbeddingBag(
          {.name = StrCat("embedding", i),
           .id_list = i,
           .rows = kTableRows,
           .dimension = shape.dimension,
           .initializer = {Initializer::Kind::kTruncatedNormal, 1 / std::sqrt(shape.dimension)}}));
    }
    linear.tables.push_back({.name = StrCat("linear", i), .id_list = i, .rows = kTableRows});
  }
  Node x = graph.Concat(parts);
  for (size_t i = 0; i < shape.hidden.size(); ++i) {
    const auto activation = shape.normalized ? Activation::kNone : Activation::kRelu;
    x = graph.Dense(x, {.name = StrCat("hidden", i),
                        .units = shape.hidden[i],
                        .activation = activation,
                        .group = kDeepGroup});
    if (!shape.normalized) continue;
    x = graph.BatchNorm(x, {.name = StrCat("norm", i), .group = kDeepGroup});
    x = graph.Dropout(graph.Activate(x, Activation::kRelu), 0.2);
  }
  x = graph.Add(graph.Dense(x, {.name = "logits", .units = 1}), graph.Linear(linear));
  return std::move(graph).Finish(x, NewBinaryHead(), {.threads = threads}).value();
}

// Holds weights and slots, which are updated as TensorFlow's DNNLinearCombinedClassifier does it.
class Trainer final : public GradientSink {
 public:
  explicit Trainer(const Engine& engine) : specs_(engine.variables()) {
    RandomStream random(1, RandomPurpose::kInitialWeights, 0);
    for (const VariableSpec& spec : specs_) {
      auto& memory = memories_.emplace_back();
      const auto n = static_cast<size_t>(spec.elements());
      const int64_t cols = spec.shape.size() == 2 ? spec.shape[1] : 1;
      memory.weights.resize(n);
      memory.accumulator.assign(n, 0.1f);
      memory.linear.assign(n, 0);
      const double glorot = std::sqrt(2.0 / static_cast<double>(spec.shape[0] + cols));
      for (float& w : memory.weights) {
        if (spec.initializer.kind == Initializer::Kind::kConstant) break;
        w = static_cast<float>(random.TruncatedNormal() * glorot);
      }
      weights.push_back({memory.weights.data(), spec.shape[0], cols});
    }
  }

  void Dense(int variable, std::span<const float> gradient) override {
    Memory& m = memories_[static_cast<size_t>(variable)];
    if (specs_[static_cast<size_t>(variable)].group == kLinearGroup) {
      math::FtrlUpdate(m.weights.data(), m.linear.data(), m.accumulator.data(), gradient.data(),
                       gradient.size(), kFtrl);
    } else {
      math::AdagradUpdate(m.weights.data(), m.accumulator.data(), gradient.data(), gradient.size(),
                          kAdagrad);
    }
  }
  void Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) override {
    Memory& m = memories_[static_cast<size_t>(variable)];
    const auto cols = static_cast<size_t>(weights[static_cast<size_t>(variable)].cols);
    if (specs_[static_cast<size_t>(variable)].group == kLinearGroup) {
      math::FtrlUpdateRows(m.weights.data(), m.linear.data(), m.accumulator.data(), cols,
                           rows.data(), rows.size(), gradient.data(), kFtrl);
    } else {
      math::AdagradUpdateRows(m.weights.data(), m.accumulator.data(), cols, rows.data(),
                              rows.size(), gradient.data(), kAdagrad);
    }
  }
  void Statistic(int, std::span<const float>) override {}

  std::vector<VariableView> weights;

 private:
  static constexpr math::AdagradRule kAdagrad{0.05f, 1e-7f};
  static constexpr math::FtrlRule kFtrl{.learning_rate = 0.2f, .l1 = 0.001f};
  struct Memory {
    std::vector<float> weights, accumulator, linear;
  };
  std::span<const VariableSpec> specs_;
  std::vector<Memory> memories_;
};

// Makes batches from 100,000 rows whose labels a logistic model draws; small ids are more frequent.
std::vector<features::FeatureBatch> Batches(const ModelShape& shape, int batch_rows) {
  RandomStream random(7, RandomPurpose::kSampleData, 0);
  std::vector<float> truth(static_cast<size_t>(shape.categorical) * kTableRows);
  for (float& t : truth) t = static_cast<float>(0.7 * random.Normal());
  std::vector<features::FeatureBatch> batches(static_cast<size_t>(100000 / batch_rows));
  for (features::FeatureBatch& batch : batches) {
    batch.rows = batch_rows;
    batch.dense.resize(static_cast<size_t>(shape.numeric));
    batch.id_lists.resize(static_cast<size_t>(shape.categorical + shape.crosses));
    for (int row = 0; row < batch_rows; ++row) {
      double score = 0;
      for (features::DenseColumn& column : batch.dense) {
        column.values.push_back(static_cast<float>(random.Normal()));
        score += 0.3 * column.values.back();
      }
      for (int i = 0; i < shape.categorical + shape.crosses; ++i) {
        const auto id = static_cast<int32_t>(kTableRows * std::pow(random.UniformDouble(), 3));
        batch.id_lists[static_cast<size_t>(i)].ids.push_back(id);
        if (i < shape.categorical) score += truth[static_cast<size_t>(i * kTableRows + id)];
      }
      batch.labels.push_back(random.UniformDouble() < 1 / (1 + std::exp(-score)) ? 1.0f : 0.0f);
    }
  }
  return batches;
}

void TrainingStep(benchmark::State& state, const ModelShape& shape) {
  const auto rows = static_cast<int>(state.range(0));
  const auto engine = WideAndDeep(shape, static_cast<int>(state.range(1)));
  const auto batches = Batches(shape, rows);
  Trainer trainer(*engine);
  int64_t step = 0;
  double loss = 0;
  for (auto _ : state) {
    const auto& batch = batches[static_cast<size_t>(step) % batches.size()];
    const auto result = engine->Step(trainer.weights, batch, {.step = step}, trainer);
    if (!result.ok()) {
      state.SkipWithError(std::string(result.status().message()).c_str());
      break;
    }
    loss = 0.99 * loss + 0.01 * result->loss;
    ++step;
  }
  state.SetItemsProcessed(step * rows);
  state.counters["loss"] = loss;
}

BENCHMARK_CAPTURE(TrainingStep, small, ModelShape{5, 9, 3, 8, {100, 75, 50, 25}})
    ->ArgNames({"batch", "threads"})
    ->Args({40, 1})
    ->Args({512, 1})
    ->Args({40, 2})
    ->Args({512, 2})
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(TrainingStep, small_normalized, ModelShape{5, 9, 3, 8, {100, 75, 50, 25}, true})
    ->ArgNames({"batch", "threads"})
    ->Args({40, 1})
    ->Args({512, 1})
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(TrainingStep, large, ModelShape{13, 26, 3, 32, {1024, 512, 256}})
    ->ArgNames({"batch", "threads"})
    ->Args({512, 1})
    ->Args({512, 2})
    ->MeasureProcessCPUTime();

}  // namespace
}  // namespace muster::engine::native
