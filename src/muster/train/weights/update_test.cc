#include "muster/train/weights/update.h"

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/random.h"
#include "muster/io/memory_file_system.h"

namespace muster::train {
namespace {

// A model whose tables and kernel are large enough to be updated in parts.
constexpr std::string_view kLargeSpec = R"(
inputs: {word: string, y: int}
label: y
columns:
  w: {hash: word, buckets: 3000}
  e: {embedding: w, dimension: 40}
  many: {hash: word, buckets: 100000}
model:
  type: wide_deep
  linear: {columns: [many], optimizer: OPTIMIZER}
  dnn: {columns: [e], hidden_units: [1000], optimizer: OPTIMIZER}
)";

// The weights and slots after three updates on `threads` threads.
std::vector<std::vector<float>> AfterUpdates(
    const std::string& optimizer, int threads,
    optim::OptimizerSpec::Rule rule = optim::OptimizerSpec::Rule::kTensorFlow) {
  const auto files = io::NewMemoryFileSystem();
  std::string yaml(kLargeSpec);
  for (size_t at; (at = yaml.find("OPTIMIZER")) != std::string::npos;) {
    yaml.replace(at, 9, optimizer);
  }
  const model::ModelSpec spec = model::ParseModelSpec(*files, yaml, "m.yaml").value();
  model::Model model = model::BuildModel(spec).value();
  for (size_t i = 0; i < model.optimizers.size(); ++i) {
    model.optimizer_specs[i].rule = rule;
    model.optimizers[i] = optim::NewOptimizer(model.optimizer_specs[i]).value();
  }
  const auto variables = Variables::Create(model, /*seed=*/1, /*with_slots=*/true).value();
  UpdateSink sink(model, *variables, threads);
  RandomStream random(20250106, RandomPurpose::kSampleData, 1);
  for (int step = 0; step < 3; ++step) {
    sink.set_step(step);
    for (int v = 0; v < static_cast<int>(variables->specs().size()); ++v) {
      const engine::VariableSpec& variable = variables->specs()[v];
      const size_t width = sink.WantsSquares(v) ? 2 : 1;
      std::vector<float> gradient(static_cast<size_t>(variable.elements()) * width);
      for (float& g : gradient)
        g = static_cast<float>(width == 2 ? random.Uniform() : random.Normal());
      if (variable.kind == engine::VariableKind::kDense) {
        sink.Dense(v, gradient);
        continue;
      }
      std::vector<int32_t> rows;
      for (int row = step; row < variable.shape[0]; row += 3) rows.push_back(row);
      sink.Rows(
          v, rows,
          std::span(gradient).first(rows.size() * static_cast<size_t>(variable.shape[1]) * width));
    }
  }
  std::vector<std::vector<float>> values;
  for (const checkpoint::Tensor& tensor : variables->Tensors(/*with_slots=*/true)) {
    const auto* const data = reinterpret_cast<const float*>(tensor.bytes.data());
    values.emplace_back(data, data + tensor.bytes.size() / sizeof(float));
  }
  return values;
}

TEST(UpdateSinkTest, BytesDoNotDependOnTheNumberOfThreads) {
  for (const char* optimizer : {"adagrad", "{adagrad: {initial_accumulator: 0, epsilon: 1e-5}}",
                                "adam", "{adam: {lazy: true}}", "{adam: {weight_decay: 0.1}}",
                                "rmsprop", "{rmsprop: {centered: true, weight_decay: 0.1}}", "ftrl",
                                "{sgd: {weight_decay: 0.1, momentum: 0.9}}",
                                "{adagrad: {weight_decay: 0.1, lazy: true}}"}) {
    const auto expected = AfterUpdates(optimizer, 1);
    ASSERT_GE(expected.size(), 10u);
    EXPECT_NE(expected.front().front(), expected.front().back());
    for (const int threads : {2, 3}) {
      EXPECT_EQ(AfterUpdates(optimizer, threads), expected) << optimizer << ", " << threads;
    }
  }
}

TEST(UpdateSinkTest, BytesDoNotDependOnTheNumberOfThreadsByKerasRules) {
  constexpr auto kKeras = optim::OptimizerSpec::Rule::kKeras;
  for (const char* optimizer :
       {"adagrad", "adam", "{adam: {weight_decay: 0.1}}", "rmsprop",
        "{rmsprop: {centered: true, momentum: 0.5}}", "ftrl", "{ftrl: {l2_shrinkage: 0.1}}",
        "{sgd: {weight_decay: 0.1, momentum: 0.9}}"}) {
    const auto expected = AfterUpdates(optimizer, 1, kKeras);
    ASSERT_GE(expected.size(), 10u);
    EXPECT_NE(expected, AfterUpdates(optimizer, 1)) << optimizer << ": both rules give the same";
    EXPECT_EQ(AfterUpdates(optimizer, 3, kKeras), expected) << optimizer;
  }
}

}  // namespace
}  // namespace muster::train
