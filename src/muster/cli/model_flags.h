// Flags that several verbs share, and how their results are shown.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/App.hpp"
#include "muster/checkpoint/lease.h"
#include "muster/metrics/metrics.h"
#include "muster/train/estimator.h"
#include "muster/train/hook_calls.h"
#include "muster/train/input.h"
#include "muster/train/progress.h"

namespace muster::cli {

// Where rows come from.
struct DataFlags {
  std::vector<std::string> patterns;
  int batch_size = 0;
  uint64_t max_bad_records = 0;
};
// `name` is the flag with the globs, such as "--data".
void AddDataFlags(CLI::App& verb, const std::string& name, const std::string& help,
                  DataFlags* flags);
constexpr int kInferenceBatchSize = 1024;  // where nothing is trained
// Data read once, in order.
train::InputSpec SequentialInput(const DataFlags& flags, int default_batch_size);

// A trained model, and which of its checkpoints; "": the newest.
struct TrainedModelFlags {
  train::RunConfig run;
  std::string checkpoint;
  std::string reader;  // who reads it, whatever its process (LeaseOn); "": this process
};
void AddTrainedModelFlags(CLI::App& verb, TrainedModelFlags* flags);
void AddThreadsFlag(CLI::App& verb, train::RunConfig* run);
// --tensorflow, of exported Keras models.
void AddTensorFlowFlag(CLI::App& verb, train::RunConfig* run);
// Of an exported model: finds TensorFlow, so that what is wrong is said before anything is made,
// and found once. FindTensorFlow's errors.
absl::Status ResolveTensorFlow(const model::ModelSpec& model, train::RunConfig* run);
// --precision fp32 or bf16; `take` is called when it is given.
void AddPrecisionFlag(CLI::App& verb, const std::string& help,
                      std::function<void(engine::Precision)> take);

// While it is there, a training that goes on leaves the checkpoint alone that `flags` name, or the
// newest, whose prefix is then *prefix. Null where there is none to be had, and where the folder
// cannot be written.
std::unique_ptr<checkpoint::Lease> LeaseOn(io::FileSystem& files, const TrainedModelFlags& flags,
                                           std::string* prefix);

// A trained model and what it stands on.
struct TrainedModel {
  std::unique_ptr<io::FileSystem> files;
  SystemClock clock;
  std::unique_ptr<checkpoint::Lease> lease;  // on the checkpoint to be read
  std::unique_ptr<train::Estimator> estimator;
};
absl::StatusOr<std::unique_ptr<TrainedModel>> OpenTrainedModel(const TrainedModelFlags& flags);

struct OutputFlags {
  bool json = false;
  bool quiet = false;
};
void AddOutputFlags(CLI::App& verb, OutputFlags* flags);
// Progress goes to stderr, so that results on stdout can be piped.
train::ProgressStyle StyleOf(const OutputFlags& flags);

// Hooks that whoever runs this program keeps (train/hook_calls.h).
struct HookCallFlags {
  std::vector<std::string> wanted;
  int answers = -1;
};
void AddHookCallFlags(CLI::App& verb, HookCallFlags* flags);
// Null where no call is wanted. Calls go to stdout.
absl::StatusOr<std::shared_ptr<train::HookCalls>> HookCallsOf(const HookCallFlags& flags);
// Adds the hook that makes the calls of `mode`, where there is one; `calls` may be null.
void AddCalledHook(const std::shared_ptr<train::HookCalls>& calls, train::ModeKeys mode,
                   std::vector<std::shared_ptr<train::Hook>>* hooks);

// Aligned "name  value" lines, or one JSON object, to stdout.
void PrintMetrics(const OutputFlags& flags, const std::string& event,
                  const std::vector<metrics::NamedValue>& metrics);

}  // namespace muster::cli
