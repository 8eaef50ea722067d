// Measures updates of tables, with the rows of a batch of 40. `per_sample` is the time divided
// by 40.
#include <benchmark/benchmark.h>

#include "muster/base/random.h"
#include "muster/optim/optimizer.h"

namespace muster::optim {
namespace {

using Rule = OptimizerSpec::Rule;

constexpr int64_t kTableRows = 100000;
constexpr int64_t kBatch = 40;
constexpr int kBatches = 64;

// Distinct rows, `count` of them.
std::vector<int32_t> DistinctRows(RandomStream& random, int64_t count) {
  std::vector<bool> taken(kTableRows);
  std::vector<int32_t> rows;
  while (static_cast<int64_t>(rows.size()) < count) {
    const auto row = static_cast<int32_t>(random.Below(kTableRows));
    if (!taken[row]) rows.push_back(row);
    taken[row] = true;
  }
  return rows;
}

void UpdateTable(benchmark::State& state, std::string_view kind, double power, int64_t cols,
                 int64_t ids, bool lazy = true, Rule rule = Rule::kTensorFlow) {
  OptimizerSpec spec;
  spec.kind = kind;
  spec.rule = rule;
  if (kind == "ftrl") spec.parameters["learning_rate_power"] = power;
  spec.lazy = lazy && rule == Rule::kTensorFlow;
  const auto optimizer = *NewOptimizer(spec);
  std::vector<float> table(kTableRows * cols, 0.1f);
  std::vector<std::vector<float>> slots;
  std::vector<float*> pointers;
  for (const SlotSpec& slot : optimizer->slots()) {
    slots.emplace_back(table.size(), slot.initial_value);
  }
  for (auto& slot : slots) pointers.push_back(slot.data());
  RandomStream random(1, RandomPurpose::kSampleData, 0);
  std::vector<std::vector<int32_t>> rows;
  for (int i = 0; i < kBatches; ++i) rows.push_back(DistinctRows(random, kBatch * ids));
  std::vector<float> gradient(kBatch * ids * optimizer->GetLayout(cols).width());
  for (float& g : gradient) g = random.Uniform() - (optimizer->wants_squares() ? 0 : 0.5f);
  int64_t step = 0;
  for (auto _ : state) {
    StepTable(*optimizer, table, cols, pointers, rows[step % kBatches], gradient, step);
    ++step;
  }
  state.counters["per_sample"] =
      benchmark::Counter(static_cast<double>(state.iterations() * kBatch),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// The wide side: 12 ids a sample, one weight each.
BENCHMARK_CAPTURE(UpdateTable, ftrl_12_ids, "ftrl", -0.5, 1, 12);
BENCHMARK_CAPTURE(UpdateTable, ftrl_power_12_ids, "ftrl", -0.7, 1, 12);
// The deep side: 8 embeddings of 8 and of 16.
BENCHMARK_CAPTURE(UpdateTable, adagrad_8_embeddings_of_8, "adagrad", -0.5, 8, 8);
BENCHMARK_CAPTURE(UpdateTable, adagrad_8_embeddings_of_16, "adagrad", -0.5, 16, 8);
BENCHMARK_CAPTURE(UpdateTable, lazy_adam_8_embeddings_of_8, "adam", -0.5, 8, 8);
BENCHMARK_CAPTURE(UpdateTable, lazy_rmsprop_8_embeddings_of_8, "rmsprop", -0.5, 8, 8);
BENCHMARK_CAPTURE(UpdateTable, sgd_8_embeddings_of_8, "sgd", -0.5, 8, 8);
// These optimizers walk the whole table.
BENCHMARK_CAPTURE(UpdateTable, adam_8_embeddings_of_8, "adam", -0.5, 8, 8, false);
BENCHMARK_CAPTURE(UpdateTable, rmsprop_8_embeddings_of_8, "rmsprop", -0.5, 8, 8, false);
// Keras's rules; adam walks the whole table, ftrl at the first step only.
BENCHMARK_CAPTURE(UpdateTable, keras_adagrad_8_embeddings_of_8, "adagrad", -0.5, 8, 8, false,
                  Rule::kKeras);
BENCHMARK_CAPTURE(UpdateTable, keras_ftrl_12_ids, "ftrl", -0.5, 1, 12, false, Rule::kKeras);
BENCHMARK_CAPTURE(UpdateTable, keras_adam_8_embeddings_of_8, "adam", -0.5, 8, 8, false,
                  Rule::kKeras);

}  // namespace
}  // namespace muster::optim
