// A model function, batches from memory, a hook. Is a number above the limit of its user?
#include <cmath>
#include <cstdio>

#include "muster/base/random.h"
#include "muster/engine/native/graph.h"
#include "muster/io/local_file_system.h"
#include "muster/train/train_and_evaluate.h"

using namespace muster;                  // NOLINT(google-build-using-namespace)
using namespace muster::engine::native;  // NOLINT(google-build-using-namespace)

absl::StatusOr<train::EstimatorSpec> ModelFn(train::ModeKeys mode, const train::RunConfig& run) {
  GraphBuilder graph;
  const Node user = graph.EmbeddingBag({.name = "user", .rows = 8, .dimension = 15});
  const Node in = graph.Concat({graph.DenseInput(0, 1), user});
  const Node hidden =
      graph.Dense(in, {.name = "hidden", .units = 16, .activation = Activation::kTanh});
  const Node logits = graph.Dense(graph.Add(hidden, in), {.name = "logits", .units = 1});
  train::EstimatorSpec spec{.mode = mode, .head = engine::HeadSpec()};
  spec.optimizers = {{.kind = "adam", .learning_rate = 0.02}};
  MUSTER_ASSIGN_OR_RETURN(
      spec.engine, std::move(graph).Finish(logits, NewHead(*spec.head), {.threads = run.threads}));
  return spec;
}

struct PrintLoss : train::Hook {
  absl::Status AfterRun(train::Session& session, const train::StepValues& values) override {
    if (session.step % 100 == 0) std::printf("step %ld: %.4f\n", session.step, values.loss);
    return absl::OkStatus();
  }
};

features::FeatureBatch Batch(RandomStream& random) {
  features::FeatureBatch batch{32, {{}}, {{}}, {}, {}};
  for (int row = 0; row < batch.rows; ++row) {
    batch.id_lists[0].ids.push_back(static_cast<int>(random.Below(8)));
    batch.dense[0].values.push_back(static_cast<float>(random.Normal()));
    const double limit = std::cos(3 * batch.id_lists[0].ids.back());
    batch.labels.push_back(batch.dense[0].values.back() > limit ? 1 : 0);
  }
  return batch;
}

int main(int, char** argv) {
  RandomStream random(1, RandomPurpose::kSampleData, 0);
  std::vector<features::FeatureBatch> batches;
  while (batches.size() < 400) batches.push_back(Batch(random));
  const auto input = train::BatchesInput(batches);
  const auto files = io::NewLocalFileSystem();
  const SystemClock clock;
  train::Progress progress(train::ProgressStyle::kLog, 2, clock);
  const auto estimator =
      train::Estimator::Create(*files, clock, {}, ModelFn, {.model_dir = argv[1]}).value();
  const train::TrainSpec training{.input_fn = input, .hooks = {std::make_shared<PrintLoss>()}};
  const auto result =
      train::TrainAndEvaluate(*estimator, training, {.input_fn = input}, progress, false).value();
  std::printf("accuracy %.4f\n", result.evaluation->metrics.front().second);
}
