// Flags that several verbs share, and the printing of their results.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/App.hpp"
#include "muster/checkpoint/lease.h"
#include "muster/cli/common/data_schemes.h"
#include "muster/cli/common/format_flags.h"
#include "muster/metrics/metrics.h"
#include "muster/train/estimator.h"
#include "muster/train/input/input.h"
#include "muster/train/input/reject_writer.h"
#include "muster/train/loop/hook_calls.h"
#include "muster/train/loop/progress.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::cli {

// Flags about where rows come from.
struct DataFlags {
  std::vector<std::string> patterns;
  int batch_size = 0;
  uint64_t max_bad_records = 0;
  std::string rejects;  // "": bad records are not kept
  data::HeldBack held_back = {};
  // Settings of the format from flags, and the function that is told what was found.
  formats::DataFormat format;
  KafkaFlags kafka;
  std::function<void(const std::string&)> note = PrintNotesOnce();
};
// `name` is the flag with the globs, such as "--data"; `bad_records_of` is appended to the help of
// --max-bad-records and says what the limit applies to.
void AddDataFlags(CLI::App& verb, const std::string& name, const std::string& help,
                  DataFlags* flags, const std::string& bad_records_of);
// Adds --rejects; call it after AddDataFlags.
void AddRejectsFlag(CLI::App& verb, DataFlags* flags);
// Makes a writer that keeps the bad records in the file `path`; null if `path` is "". The caller
// closes it.
absl::StatusOr<std::unique_ptr<train::RejectWriter>> OpenRejects(io::FileSystem& files,
                                                                 const std::string& path);
train::RejectRecord RejectInto(train::RejectWriter* writer);
// Returns ", left out 2 bad records"; "" if there are none.
std::string LeftOut(uint64_t bad_records);
// Returns ", delimiter tab, no header": the format's settings from flags; "" if there are none.
std::string DescribeFormatFlags(const DataFlags& flags);
constexpr int kInferenceBatchSize = 1024;  // default when nothing is trained
// Makes an input that reads the data once, in order. `format` is the model's; settings from flags
// replace its own.
train::InputSpec SequentialInput(const DataFlags& flags, const formats::DataFormat& format,
                                 int default_batch_size);

// A trained model and one of its checkpoints: "" for the newest, "best", or the folder of an
// export.
struct TrainedModelFlags {
  train::RunConfig run;
  std::string checkpoint;
  bool fall_back = false;  // whether an older checkpoint is used if the newest is broken
  std::string reader;      // the reader's name, across processes (LeaseOn); "": this process
};
// What CLI11 says of a flag whose value must not be empty: "" unless it is.
std::string CheckNotEmpty(const std::string& value);
void AddTrainedModelFlags(CLI::App& verb, TrainedModelFlags* flags);
// Adds --fall-back, for verbs that otherwise refuse a broken newest checkpoint.
void AddFallBackFlag(CLI::App& verb, TrainedModelFlags* flags);
// Replaces "best" by the name of the best checkpoint, so that all later steps use the same one.
// NOT_FOUND if no evaluation has recorded a best one.
absl::Status ResolveBest(io::FileSystem& files, TrainedModelFlags* flags);
// Replaces "" by the newest checkpoint whose checksums are all valid, so that several processes
// read the same one. If that is not the newest one, warns if falling back is allowed, else returns
// DATA_LOSS.
absl::Status ResolveNewest(io::FileSystem& files, bool fall_back, TrainedModelFlags* flags);
void AddThreadsFlag(CLI::App& verb, train::RunConfig* run);
// Adds --tensorflow, for exported Keras models.
void AddTensorFlowFlag(CLI::App& verb, train::RunConfig* run);
// For an exported model: finds TensorFlow once, so that problems are reported before anything is
// made. Errors are those of FindTensorFlow.
absl::Status ResolveTensorFlow(const model::ModelSpec& model, train::RunConfig* run);
// Adds --precision fp32 or bf16; `take` is called if the flag is given.
void AddPrecisionFlag(CLI::App& verb, const std::string& help,
                      std::function<void(engine::Precision)> take);

// Returns a lease with which a running training does not delete the checkpoint that `flags` name,
// or else the newest one, whose prefix becomes *prefix. Null if there is no checkpoint to lease, or
// if the folder cannot be written.
std::unique_ptr<checkpoint::Lease> LeaseOn(io::FileSystem& files, const TrainedModelFlags& flags,
                                           std::string* prefix);

// Warns if the checkpoint is from before the first step. "": none.
void WarnIfUntrained(const std::string& prefix);

// A trained model and what it depends on.
struct TrainedModel {
  std::unique_ptr<io::FileSystem> files;
  SystemClock clock;
  std::unique_ptr<checkpoint::Lease> lease;  // on the checkpoint to be read
  std::unique_ptr<train::Estimator> estimator;
};
absl::StatusOr<std::unique_ptr<TrainedModel>> OpenTrainedModel(TrainedModelFlags flags);

struct OutputFlags {
  bool json = false;
  bool quiet = false;
};
void AddOutputFlags(CLI::App& verb, OutputFlags* flags);
// Progress goes to stderr, so that results on stdout can be piped.
train::ProgressStyle MakeStyle(const OutputFlags& flags);

// Hooks that run in the parent process (train/loop/hook_calls.h).
struct HookCallFlags {
  std::vector<std::string> wanted;
  int answers = -1;
};
void AddHookCallFlags(CLI::App& verb, HookCallFlags* flags);
// Returns null if no calls are requested. Calls go to stdout.
absl::StatusOr<std::shared_ptr<train::HookCalls>> GetHookCalls(const HookCallFlags& flags);
// Adds the hook that makes the calls of `mode`, if there are any; `calls` may be null.
void AddCalledHook(const std::shared_ptr<train::HookCalls>& calls, train::ModeKeys mode,
                   std::vector<std::shared_ptr<train::Hook>>* hooks);

// Prints aligned "name  value" lines, or one JSON object, to stdout.
void PrintMetrics(const OutputFlags& flags, const std::string& event,
                  const train::EvalResult& result);
// Returns an object; a value that is not finite becomes null.
nlohmann::ordered_json NumbersJson(const std::vector<metrics::NamedValue>& values);

}  // namespace muster::cli
