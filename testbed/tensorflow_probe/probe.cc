// usage: muster-tensorflow-probe EXPORT BATCHES RESULTS STEPS [RATE [TABLE_ROWS]]
//
// Steps over the batches of the bundle BATCHES (batch/N/input/NAME, batch/N/label/NAME,
// batch/N/sample_weight), round and round, and writes what the engine gave in the last round, its
// predictions and the weights to the bundle RESULTS. With RATE each step's gradients are taken off
// the weights at that rate; else the weights stay. TABLE_ROWS: tables are made that long, with
// zeros. Prints one JSON object: times in microseconds a step, and the host's starts.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "muster/engine/tensorflow/find_tensorflow.h"
#include "muster/engine/tensorflow/tensorflow_engine.h"
#include "muster/formats/bundle.h"
#include "muster/io/local_file_system.h"
#include "testbed/tensorflow_probe/read_batches.h"

namespace {

using muster::StrCat;
using muster::engine::VariableKind;
using muster::engine::VariableSpec;
using muster::engine::VariableView;
using muster::features::FeatureBatch;
using muster::formats::BundleReader;
using muster::formats::BundleWriter;
using muster::formats::DataType;

struct Arguments {
  std::string folder, batches, results;
  int steps = 1;
  float rate = 0;
  int64_t table_rows = 0;
};

// Keeps what the last step gave, and takes it off the weights.
class ProbeSink final : public muster::engine::GradientSink {
 public:
  ProbeSink(std::span<const VariableSpec> specs, std::span<const VariableView> weights, float rate)
      : specs_(specs),
        weights_(weights),
        rate_(rate),
        gradients_(specs.size()),
        rows_(specs.size()),
        squares_(specs.size()) {}

  bool WantsSquares(int) const override { return true; }
  void Dense(int variable, std::span<const float> gradient) override {
    Keep(variable, gradient);
    float* const w = weights_[static_cast<size_t>(variable)].data;
    for (size_t i = 0; i < gradient.size(); ++i) w[i] -= rate_ * gradient[i];
  }
  void Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) override {
    const auto v = static_cast<size_t>(variable);
    rows_[v].assign(rows.begin(), rows.end());
    gradients_[v].clear();
    squares_[v].clear();
    const auto cols = static_cast<size_t>(weights_[v].cols);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto sums = gradient.subspan(2 * i * cols, cols);
      const auto squares = gradient.subspan((2 * i + 1) * cols, cols);
      gradients_[v].insert(gradients_[v].end(), sums.begin(), sums.end());
      squares_[v].insert(squares_[v].end(), squares.begin(), squares.end());
      float* const row = weights_[v].data + static_cast<size_t>(rows[i]) * cols;
      for (size_t j = 0; j < cols; ++j) row[j] -= rate_ * sums[j];
    }
  }
  void Statistic(int variable, std::span<const float> value) override {
    Keep(variable, value);
    if (rate_ != 0) {
      std::copy(value.begin(), value.end(), weights_[static_cast<size_t>(variable)].data);
    }
  }

  absl::Status Write(BundleWriter& out, const std::string& step) const {
    for (size_t i = 0; i < specs_.size(); ++i) {
      const std::string& name = specs_[i].name;
      MUSTER_RETURN_IF_ERROR(WriteFloats(out, StrCat(step, "/gradient/", name), gradients_[i]));
      if (specs_[i].kind != VariableKind::kTable) continue;
      const int64_t count = static_cast<int64_t>(rows_[i].size());
      MUSTER_RETURN_IF_ERROR(
          out.Add(StrCat(step, "/rows/", name), DataType::kInt32, {&count, 1},
                  {reinterpret_cast<const char*>(rows_[i].data()), rows_[i].size() * 4}));
      MUSTER_RETURN_IF_ERROR(WriteFloats(out, StrCat(step, "/squares/", name), squares_[i]));
    }
    return absl::OkStatus();
  }

  static absl::Status WriteFloats(BundleWriter& out, const std::string& name,
                                  std::span<const float> values) {
    const int64_t count = static_cast<int64_t>(values.size());
    return out.Add(name, DataType::kFloat, {&count, 1},
                   {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }

 private:
  void Keep(int variable, std::span<const float> values) {
    gradients_[static_cast<size_t>(variable)].assign(values.begin(), values.end());
  }

  const std::span<const VariableSpec> specs_;
  const std::span<const VariableView> weights_;
  const float rate_;
  std::vector<std::vector<float>> gradients_;
  std::vector<std::vector<int32_t>> rows_;
  std::vector<std::vector<float>> squares_;
};

double CpuMicros(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

double CpuMicrosOf(pid_t pid) {
  clockid_t clock = 0;
  return clock_getcpuclockid(pid, &clock) == 0 ? CpuMicros(clock) : 0;
}

absl::Status Probe(const Arguments& arguments) {
  const auto local = muster::io::NewLocalFileSystem();
  muster::io::FileSystem& files = *local;
  namespace tensorflow = muster::engine::tensorflow;
  const auto environment = muster::process::CurrentEnvironment();
  MUSTER_ASSIGN_OR_RETURN(auto model, tensorflow::OpenKerasExport(files, arguments.folder));
  tensorflow::TensorFlowOptions options{.environment = environment};
  MUSTER_ASSIGN_OR_RETURN(options.library_folder, tensorflow::FindTensorFlow("", environment));
  if (getenv("PROBE_THREADS") != nullptr) options.threads = atoi(getenv("PROBE_THREADS"));
  MUSTER_ASSIGN_OR_RETURN(const auto engine,
                          tensorflow::NewTensorFlowEngine(files, model, options));
  MUSTER_ASSIGN_OR_RETURN(const auto initial, BundleReader::Open(files, model.weights()));
  std::vector<std::vector<float>> memory;
  std::vector<VariableView> weights;
  for (const VariableSpec& spec : engine->variables()) {
    auto& values = memory.emplace_back(static_cast<size_t>(spec.elements()));
    MUSTER_RETURN_IF_ERROR(
        initial->Read(spec.name, {reinterpret_cast<char*>(values.data()), values.size() * 4}));
    const bool table = spec.kind == VariableKind::kTable;
    const int64_t cols = table ? spec.shape[1] : 1;
    if (table && arguments.table_rows > 0) {
      values.resize(static_cast<size_t>(arguments.table_rows * cols));
    }
    weights.push_back({values.data(), static_cast<int64_t>(values.size()) / cols, cols});
  }
  MUSTER_ASSIGN_OR_RETURN(const auto given, BundleReader::Open(files, arguments.batches));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<FeatureBatch> batches,
                          muster::testbed::ReadBatches(*given, engine->model()));
  MUSTER_ASSIGN_OR_RETURN(const auto out, BundleWriter::Create(files, arguments.results));
  ProbeSink sink(engine->variables(), weights, arguments.rate);
  const auto last_round = arguments.steps - static_cast<int>(batches.size());
  std::vector<double> micros;
  double cpu = 0, host_cpu = 0;
  const int measured_from = arguments.steps / 4;
  for (int step = 0; step < arguments.steps; ++step) {
    if (step == measured_from) {
      cpu = CpuMicros(CLOCK_PROCESS_CPUTIME_ID);
      host_cpu = CpuMicrosOf(engine->host()->pid());
    }
    const auto begin = std::chrono::steady_clock::now();
    const size_t n = static_cast<size_t>(step) % batches.size();
    MUSTER_ASSIGN_OR_RETURN(const auto result,
                            engine->Step(weights, batches[n], {.seed = 7, .step = step}, sink));
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    if (step >= measured_from) micros.push_back(took.count());
    if (step < last_round) continue;
    const float losses[2] = {static_cast<float>(result.loss), static_cast<float>(result.data_loss)};
    MUSTER_RETURN_IF_ERROR(ProbeSink::WriteFloats(*out, StrCat("step/", n, "/losses"), losses));
    MUSTER_RETURN_IF_ERROR(sink.Write(*out, StrCat("step/", n)));
  }
  const double steps = arguments.steps - measured_from;
  cpu = (CpuMicros(CLOCK_PROCESS_CPUTIME_ID) - cpu) / steps;
  host_cpu = (CpuMicrosOf(engine->host()->pid()) - host_cpu) / steps;
  muster::engine::Forward forward;
  MUSTER_RETURN_IF_ERROR(engine->Predict(weights, batches[0], &forward));
  MUSTER_RETURN_IF_ERROR(ProbeSink::WriteFloats(*out, "predict/logits", forward.logits));
  const float loss_sum[1] = {static_cast<float>(forward.loss_sum)};
  MUSTER_RETURN_IF_ERROR(ProbeSink::WriteFloats(*out, "predict/loss_sum", loss_sum));
  for (size_t i = 0; i < memory.size(); ++i) {
    if (arguments.table_rows > 0) break;
    MUSTER_RETURN_IF_ERROR(
        ProbeSink::WriteFloats(*out, StrCat("weights/", engine->variables()[i].name), memory[i]));
  }
  MUSTER_RETURN_IF_ERROR(out->Finish());
  std::nth_element(micros.begin(), micros.begin() + micros.size() / 2, micros.end());
  std::printf(
      "{\"version\": \"%s\", \"starts\": %d, \"median_us\": %.1f, \"cpu_us\": %.1f, "
      "\"host_cpu_us\": %.1f}\n",
      engine->host()->version().c_str(), engine->host()->starts(), micros[micros.size() / 2], cpu,
      host_cpu);
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fputs("usage: muster-tensorflow-probe EXPORT BATCHES RESULTS STEPS [RATE [TABLE_ROWS]]\n",
               stderr);
    return 2;
  }
  Arguments arguments{
      .folder = argv[1], .batches = argv[2], .results = argv[3], .steps = std::atoi(argv[4])};
  if (argc > 5) arguments.rate = static_cast<float>(std::atof(argv[5]));
  if (argc > 6) arguments.table_rows = std::atoll(argv[6]);
  const absl::Status status = Probe(arguments);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}
