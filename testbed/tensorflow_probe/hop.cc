// usage: muster-tensorflow-hop EXPORT BATCHES STEPS
//
// What it costs that TensorFlow runs in a process of its own: the step function on the first batch
// of the bundle, in the host and in this process, in turns, on the same memory. Prints one JSON
// object: microseconds a step of wall and of CPU time of both, medians over turns of 50 steps, and
// their lowest tenth, which a busy machine disturbs less.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "muster/engine/tensorflow/feeds.h"
#include "muster/engine/tensorflow/find_tensorflow.h"
#include "muster/engine/tensorflow/host/saved_model.h"
#include "muster/engine/tensorflow/host_process.h"
#include "muster/engine/tensorflow/raw_columns.h"
#include "muster/engine/tensorflow/session_config.h"
#include "muster/io/local_file_system.h"
#include "testbed/tensorflow_probe/read_batches.h"

namespace {

namespace tensorflow = muster::engine::tensorflow;
using muster::engine::VariableView;
using muster::features::IdList;
using muster::formats::BundleReader;
using tensorflow::KerasPort;

double CpuOf(pid_t pid) {
  clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
  timespec now = {};
  if (pid > 0 && clock_getcpuclockid(pid, &clock) != 0) return 0;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// Wall and CPU of turns, in microseconds a step.
struct Cost {
  std::vector<double> wall, cpu;
};

double Quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(part * static_cast<double>(values.size()))];
}

uint64_t TypeOf(const tensorflow::KerasExport& model, const KerasPort& port) {
  const auto i = static_cast<size_t>(port.index);
  switch (port.role) {
    case KerasPort::Role::kVariable:
      return static_cast<uint64_t>(model.variables[i].type);
    case KerasPort::Role::kInput:
      return static_cast<uint64_t>(model.inputs[i].type);
    case KerasPort::Role::kIds:
      return 3;
    default:
      return 1;
  }
}

absl::Status Measure(const std::string& folder, const std::string& bundle, int steps) {
  const auto files = muster::io::NewLocalFileSystem();
  const auto environment = muster::process::CurrentEnvironment();
  MUSTER_ASSIGN_OR_RETURN(const auto model, tensorflow::OpenKerasExport(*files, folder));
  MUSTER_ASSIGN_OR_RETURN(const std::string library_folder,
                          tensorflow::FindTensorFlow("", environment));
  const std::string config = tensorflow::SessionConfig(1, tensorflow::Executor::kSingleThreaded);
  MUSTER_ASSIGN_OR_RETURN(const auto host,
                          tensorflow::HostProcess::Start({.library_folder = library_folder,
                                                          .saved_model = model.saved_model(),
                                                          .config = config,
                                                          .environment = environment,
                                                          .one_core = true}));
  MUSTER_ASSIGN_OR_RETURN(const auto library, tensorflow::host::LoadLibrary(library_folder));
  MUSTER_ASSIGN_OR_RETURN(
      const auto here,
      tensorflow::host::SavedModel::Load(library, host->segment(), model.saved_model(), config));
  const tensorflow::KerasSignature& signature = *model.Find("step");
  tensorflow::FunctionSpec function;
  std::vector<tensorflow::host::FeedName> names;
  std::vector<std::string_view> fetches;
  for (const KerasPort& port : signature.inputs) {
    function.feeds.push_back({port.tensor, TypeOf(model, port)});
    names.push_back({port.tensor, TypeOf(model, port)});
  }
  for (const KerasPort& port : signature.outputs) {
    function.fetches.push_back(port.tensor);
    fetches.push_back(port.tensor);
  }
  MUSTER_ASSIGN_OR_RETURN(const uint64_t there_number, host->Define(function));
  MUSTER_ASSIGN_OR_RETURN(const uint64_t here_number, here->Define(names, fetches));
  MUSTER_ASSIGN_OR_RETURN(const auto given, BundleReader::Open(*files, bundle));
  MUSTER_ASSIGN_OR_RETURN(const auto batches, muster::testbed::ReadBatches(*given, model));
  tensorflow::Feeds feeds(model, host->segment());
  MUSTER_RETURN_IF_ERROR(feeds.Begin(*files));
  std::vector<std::vector<float>> tables(model.variables.size());
  for (size_t v = 0; v < tables.size(); ++v) {
    const auto& variable = model.variables[v];
    if (variable.kind != tensorflow::KerasVariable::Kind::kTable || variable.constant()) continue;
    tables[v].resize(static_cast<size_t>(variable.shape[0] * variable.shape[1]));
    const int number = static_cast<int>(v);
    const VariableView view{tables[v].data(), variable.shape[0], variable.shape[1]};
    feeds.SetWeights({&number, 1}, {&view, 1});
  }
  std::vector<IdList> ids(model.lookups.size());
  for (size_t k = 0; k < ids.size(); ++k) {
    if (model.lookups[k].computed()) {
      return absl::UnimplementedError(
          "its ids are computed from its inputs: give an export whose ids are inputs");
    }
    const auto& column = batches[0].raw[static_cast<size_t>(model.lookups[k].input)];
    MUSTER_ASSIGN_OR_RETURN(ids[k].ids, tensorflow::ReadIds(column.type, column.bytes, "ids"));
    ids[k].shape = column.shape;
    ids[k].shape.insert(ids[k].shape.begin(), batches[0].rows);
  }
  MUSTER_RETURN_IF_ERROR(feeds.SetBatch(batches[0], &ids));
  const auto places = feeds.Of(signature);
  tensorflow::host::FieldWriter fields;
  for (const auto& place : places) place.Write(fields);
  constexpr uint64_t kReplyBytes = 4 << 20;
  MUSTER_ASSIGN_OR_RETURN(const uint64_t reply, host->segment().Allocate(kReplyBytes));
  Cost there_cost, here_cost;
  constexpr int kTurn = 50, kWarmUp = 3;
  for (int turn = 0; turn < steps / kTurn; ++turn) {
    for (Cost* const cost : {&there_cost, &here_cost}) {
      const double cpu = CpuOf(0) + CpuOf(host->pid());
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kTurn; ++i) {
        if (cost == &there_cost) {
          MUSTER_RETURN_IF_ERROR(host->Run(there_number, places).status());
        } else {
          MUSTER_RETURN_IF_ERROR(
              here->Run(here_number, tensorflow::host::FieldReader(fields.bytes())));
          here->WriteResult(reply, kReplyBytes);
        }
      }
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      if (turn < kWarmUp) continue;
      cost->wall.push_back(took.count() / kTurn);
      cost->cpu.push_back((CpuOf(0) + CpuOf(host->pid()) - cpu) / kTurn);
    }
  }
  for (const double part : {0.5, 0.1}) {
    const double there = Quantile(there_cost.wall, part),
                 in_process = Quantile(here_cost.wall, part);
    const double there_cpu = Quantile(there_cost.cpu, part),
                 in_process_cpu = Quantile(here_cost.cpu, part);
    std::printf(
        "{\"quantile\": %.1f, \"host_us\": %.1f, \"here_us\": %.1f, \"hop_us\": %.1f, "
        "\"host_cpu_us\": %.1f, \"here_cpu_us\": %.1f, \"hop_cpu_us\": %.1f}\n",
        part, there, in_process, there - in_process, there_cpu, in_process_cpu,
        there_cpu - in_process_cpu);
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: muster-tensorflow-hop EXPORT BATCHES STEPS\n", stderr);
    return 2;
  }
  const absl::Status status = Measure(argv[1], argv[2], std::atoi(argv[3]));
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}
