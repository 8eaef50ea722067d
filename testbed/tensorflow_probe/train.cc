// usage: muster-tensorflow-train EXPORT BATCHES WEIGHTS STEPS REPLICAS
//
// Trains an exported Keras model by its own optimizer, for the component test that compares it with
// Keras: REPLICAS threads, each with an engine and weights of its own, sum gradients as replicas of
// a job do. In step s replica r has batch s * REPLICAS + r of the bundle BATCHES (read_batches.h).
// Writes the weights to the bundle WEIGHTS, by name; they are the same bytes on every replica, or
// it fails.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/collective/test_ranks.h"
#include "muster/engine/tensorflow/find_tensorflow.h"
#include "muster/engine/tensorflow/tensorflow_engine.h"
#include "muster/formats/bundle.h"
#include "muster/io/local_file_system.h"
#include "muster/model/keras/keras_optimizer.h"
#include "muster/train/allreduce/reduce_sink.h"
#include "muster/train/weights/clip_sink.h"
#include "testbed/tensorflow_probe/read_batches.h"

namespace {

namespace tensorflow = muster::engine::tensorflow;
using muster::engine::VariableKind;
using muster::engine::VariableSpec;
using muster::engine::VariableView;
using muster::features::FeatureBatch;
using muster::formats::BundleReader;
using muster::formats::BundleWriter;
using muster::formats::DataType;

struct Training {
  std::string folder, batches, weights;
  int steps = 0, replicas = 1;
};

// Weights and slots, and what moves them.
class ApplySink final : public muster::engine::GradientSink {
 public:
  absl::Status Begin(muster::io::FileSystem& files, const tensorflow::KerasExport& model,
                     const muster::model::KerasOptimizer& optimizer,
                     std::span<const VariableSpec> specs) {
    specs_ = specs;
    for (const auto& spec : optimizer.specs) {
      MUSTER_ASSIGN_OR_RETURN(optimizers_.emplace_back(), muster::optim::NewOptimizer(spec));
    }
    MUSTER_ASSIGN_OR_RETURN(const auto initial, BundleReader::Open(files, model.weights()));
    for (const VariableSpec& spec : specs) {
      auto& values = memory_.emplace_back(static_cast<size_t>(spec.elements()));
      MUSTER_RETURN_IF_ERROR(
          initial->Read(spec.name, {reinterpret_cast<char*>(values.data()), values.size() * 4}));
      const int64_t cols = spec.kind == VariableKind::kTable ? spec.shape[1] : 1;
      views_.push_back({values.data(), static_cast<int64_t>(values.size()) / cols, cols});
      auto& slots = slots_.emplace_back();
      for (const auto& slot : OptimizerOf(views_.size() - 1).slots()) {
        slots.emplace_back(values.size(), slot.initial_value);
      }
    }
    return absl::OkStatus();
  }

  void set_step(int64_t step) { step_ = step; }
  std::span<const VariableView> views() const { return views_; }
  const std::vector<std::vector<float>>& memory() const { return memory_; }

  bool WantsSquares(int variable) const override {
    const auto v = static_cast<size_t>(variable);
    return specs_[v].kind == VariableKind::kTable && OptimizerOf(v).wants_squares();
  }
  void Dense(int variable, std::span<const float> gradient) override {
    const auto v = static_cast<size_t>(variable);
    OptimizerOf(v).ApplyDense(memory_[v], Slots(v), gradient, step_);
  }
  void Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) override {
    const auto v = static_cast<size_t>(variable);
    muster::optim::StepTable(OptimizerOf(v), memory_[v], views_[v].cols, Slots(v), rows, gradient,
                             step_);
  }
  void Statistic(int variable, std::span<const float> value) override {
    memory_[static_cast<size_t>(variable)].assign(value.begin(), value.end());
  }

 private:
  const muster::optim::Optimizer& OptimizerOf(size_t variable) const {
    return *optimizers_[static_cast<size_t>(specs_[variable].group)];
  }
  std::vector<float*> Slots(size_t variable) {
    std::vector<float*> slots;
    for (auto& slot : slots_[variable]) slots.push_back(slot.data());
    return slots;
  }

  std::span<const VariableSpec> specs_;
  std::vector<std::unique_ptr<muster::optim::Optimizer>> optimizers_;
  std::vector<std::vector<float>> memory_;
  std::vector<VariableView> views_;
  std::vector<std::vector<std::vector<float>>> slots_;  // by variable
  int64_t step_ = 0;
};

absl::Status TrainReplica(const Training& training, muster::collective::Group& group) {
  const auto local = muster::io::NewLocalFileSystem();
  const auto environment = muster::process::CurrentEnvironment();
  MUSTER_ASSIGN_OR_RETURN(const auto model, tensorflow::OpenKerasExport(*local, training.folder));
  MUSTER_ASSIGN_OR_RETURN(const auto optimizer, muster::model::ParseKerasOptimizer(model));
  tensorflow::TensorFlowOptions options{.environment = environment, .groups = optimizer.groups};
  MUSTER_ASSIGN_OR_RETURN(options.library_folder, tensorflow::FindTensorFlow("", environment));
  MUSTER_ASSIGN_OR_RETURN(const auto engine,
                          tensorflow::NewTensorFlowEngine(*local, model, options));
  MUSTER_ASSIGN_OR_RETURN(const auto given, BundleReader::Open(*local, training.batches));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<FeatureBatch> batches,
                          muster::testbed::ReadBatches(*given, model));
  const auto replicas = static_cast<size_t>(training.replicas);
  const auto rank = static_cast<size_t>(group.rank());
  if (batches.size() < static_cast<size_t>(training.steps) * replicas) {
    return absl::InvalidArgumentError("there are fewer batches than steps");
  }
  ApplySink apply;
  MUSTER_RETURN_IF_ERROR(apply.Begin(*local, model, optimizer, engine->variables()));
  std::optional<muster::train::ClipSink> clip;
  muster::engine::GradientSink* first = &apply;
  if (optimizer.clip.kind != muster::optim::ClipSpec::Kind::kNone) {
    first = &clip.emplace(optimizer.clip, apply);
  }
  muster::train::ReduceSink reduce(engine->variables());
  for (int step = 0; step < training.steps; ++step) {
    apply.set_step(step);
    const size_t at = static_cast<size_t>(step) * replicas;
    double rows = 0;
    for (size_t r = 0; r < replicas; ++r) rows += batches[at + r].rows;
    reduce.Begin(group, *first, batches[at + rank].rows / rows, /*early=*/false);
    MUSTER_ASSIGN_OR_RETURN(
        auto result,
        engine->Step(
            apply.views(), batches[at + rank],
            {.seed = 7, .step = step, .replica = static_cast<uint32_t>(rank), .denominator = rows},
            reduce));
    std::vector<std::string> notes;
    MUSTER_RETURN_IF_ERROR(reduce.Reduce(&result, "", &notes));
    reduce.Give();
    if (clip) clip->Finish();
  }
  // All of them, as one text, to compare.
  std::string mine;
  for (const auto& values : apply.memory()) {
    mine.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  }
  std::vector<std::string> all;
  reduce.Begin(group, apply, 1, /*early=*/false);
  muster::engine::StepResult none;
  MUSTER_RETURN_IF_ERROR(reduce.Reduce(&none, mine, &all));
  for (const std::string& each : all) {
    if (each != mine) return absl::InternalError("two replicas have different weights");
  }
  if (rank != 0) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const auto out, BundleWriter::Create(*local, training.weights));
  for (size_t v = 0; v < apply.memory().size(); ++v) {
    const auto& values = apply.memory()[v];
    const auto count = static_cast<int64_t>(values.size());
    MUSTER_RETURN_IF_ERROR(
        out->Add(engine->variables()[v].name, DataType::kFloat, {&count, 1},
                 {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}));
  }
  return out->Finish();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fputs("usage: muster-tensorflow-train EXPORT BATCHES WEIGHTS STEPS REPLICAS\n", stderr);
    return 2;
  }
  const Training training{.folder = argv[1],
                          .batches = argv[2],
                          .weights = argv[3],
                          .steps = std::atoi(argv[4]),
                          .replicas = std::atoi(argv[5])};
  muster::collective::TestRanks ranks(training.replicas);
  int failed = 0;
  for (const absl::Status& status : ranks.Run([&](muster::collective::Group& group) {
         const absl::Status trained = TrainReplica(training, group);
         return trained.ok() ? trained : group.Fail(trained);
       })) {
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    failed = 1;
  }
  return failed;
}
