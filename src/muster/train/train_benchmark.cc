// Measures training from memory by one thread: batches of real rows are read once and then trained
// on repeatedly (forward, backward, update). `bench/run train-pytorch` and `bench/run deep` run it.
//
// Environment: MUSTER_BENCHMARK_SPEC (a model file, whose precision is used) and
// MUSTER_BENCHMARK_DATA (a glob of its rows).
#include <cstdlib>
#include <memory>
#include <vector>

#include "benchmark/benchmark.h"
#include "muster/io/local_file_system.h"
#include "muster/model/model.h"
#include "muster/train/input/input.h"
#include "muster/train/weights/update.h"
#include "muster/train/weights/variables.h"

namespace muster::train {
namespace {

constexpr int kEpochs = 9;  // measured epochs, after one that warms the caches
constexpr uint64_t kSeed = 1;

struct MemoryTraining {
  model::Model model;
  std::vector<features::FeatureBatch> batches;
  std::unique_ptr<Variables> variables;
  int64_t rows = 0;
  int64_t step = 0;
};

absl::StatusOr<std::unique_ptr<MemoryTraining>> Load(int batch_size) {
  const char* const spec_path = std::getenv("MUSTER_BENCHMARK_SPEC");
  const char* const data_glob = std::getenv("MUSTER_BENCHMARK_DATA");
  if (spec_path == nullptr || data_glob == nullptr) {
    return absl::FailedPreconditionError(
        "set MUSTER_BENCHMARK_SPEC and MUSTER_BENCHMARK_DATA to a model file and its data");
  }
  const auto files = io::NewLocalFileSystem();
  auto training = std::make_unique<MemoryTraining>();
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec, model::LoadModelSpec(*files, spec_path));
  MUSTER_ASSIGN_OR_RETURN(training->model,
                          model::BuildModel(spec, {.native = {.training = spec.train.precision}}));
  MUSTER_ASSIGN_OR_RETURN(training->variables,
                          Variables::Create(training->model, kSeed, /*with_slots=*/true));
  InputSpec input_spec;
  input_spec.source.patterns = {data_glob};
  input_spec.reader = {.batch_size = batch_size, .shuffle = true, .seed = kSeed};
  MUSTER_ASSIGN_OR_RETURN(const auto input, Input::Open(*files, training->model, input_spec));
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const InputBatch* const batch, input->Next());
    if (batch == nullptr) return training;
    training->batches.push_back(batch->features);
    training->rows += batch->features.rows;
  }
}

// Trains one epoch and returns its mean loss.
absl::StatusOr<double> RunEpoch(MemoryTraining& training, UpdateSink& sink) {
  double loss_sum = 0;
  for (const features::FeatureBatch& batch : training.batches) {
    sink.set_step(training.step);
    MUSTER_ASSIGN_OR_RETURN(
        const engine::StepResult result,
        training.model.engine->Step(training.variables->views(), batch,
                                    {.seed = kSeed, .step = training.step}, sink));
    ++training.step;
    loss_sum += result.loss * batch.rows;
  }
  return loss_sum / static_cast<double>(training.rows);
}

void TrainFromMemory(benchmark::State& state) {
  const auto training = Load(static_cast<int>(state.range(0)));
  if (!training.ok()) {
    state.SkipWithError(std::string(training.status().message()).c_str());
    return;
  }
  UpdateSink sink((*training)->model, *(*training)->variables);
  absl::StatusOr<double> loss = RunEpoch(**training, sink);
  for ([[maybe_unused]] const auto iteration : state) {
    if (loss.ok()) loss = RunEpoch(**training, sink);
  }
  if (!loss.ok()) {
    state.SkipWithError(std::string(loss.status().message()).c_str());
    return;
  }
  state.SetItemsProcessed(state.iterations() * (*training)->rows);
  state.counters["loss"] = *loss;  // of the last epoch
}
BENCHMARK(TrainFromMemory)
    ->Arg(40)
    ->Arg(512)
    ->Arg(4096)
    ->Iterations(kEpochs)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace muster::train
