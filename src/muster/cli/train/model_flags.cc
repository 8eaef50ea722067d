#include "muster/cli/train/model_flags.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "CLI/CLI.hpp"
#include "muster/checkpoint/best.h"
#include "muster/cli/common/help.h"
#include "muster/engine/tensorflow/find_tensorflow.h"
#include "muster/files/file_systems.h"
#include "muster/process/child.h"
#include "muster/score/inference.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

// a training may remove the newest checkpoint before it is leased
constexpr int kLeaseAttempts = 3;

std::string ProcessName() {
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, sizeof host - 1);
  return StrCat("reader-", host, "-", getpid());
}

// A row of the calibration table: the predictions in [I / N, (I + 1) / N) and the mean of their
// labels.
struct CalibrationBucket {
  double weight = 0, prediction_mean = 0, label_mean = 0;
};

bool IsOfBucket(std::string_view name) { return name.starts_with("calibration/bucket_"); }

// Reads calibration/bucket_I/{label_mean,prediction_mean,weight}, which come in this order.
std::vector<CalibrationBucket> FindBuckets(const std::vector<metrics::NamedValue>& metrics) {
  std::vector<CalibrationBucket> buckets;
  for (const auto& [name, value] : metrics) {
    if (!IsOfBucket(name)) continue;
    if (name.ends_with("/label_mean")) buckets.emplace_back().label_mean = value;
    if (name.ends_with("/prediction_mean")) buckets.back().prediction_mean = value;
    if (name.ends_with("/weight")) buckets.back().weight = value;
  }
  return buckets;
}

nlohmann::ordered_json JsonNumber(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json JsonBuckets(const std::vector<CalibrationBucket>& buckets) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const auto count = static_cast<double>(buckets.size());
  for (size_t i = 0; i < buckets.size(); ++i) {
    rows.push_back({{"from", static_cast<double>(i) / count},
                    {"to", static_cast<double>(i + 1) / count},
                    {"weight", buckets[i].weight},
                    {"prediction_mean", JsonNumber(buckets[i].prediction_mean)},
                    {"label_mean", JsonNumber(buckets[i].label_mean)}});
  }
  return rows;
}

// Leaves out buckets without rows.
void PrintBuckets(const std::vector<CalibrationBucket>& buckets) {
  if (buckets.empty()) return;
  std::printf("  %-17s  %12s  %12s  %12s\n", "predictions", "weight", "mean", "observed");
  const auto count = static_cast<double>(buckets.size());
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (buckets[i].weight == 0) continue;
    const std::string range = absl::StrFormat("%.4g to %.4g", static_cast<double>(i) / count,
                                              static_cast<double>(i + 1) / count);
    std::printf("  %-17s  %12s  %12.6f  %12.6f\n", range.c_str(),
                absl::StrFormat("%.10g", buckets[i].weight).c_str(), buckets[i].prediction_mean,
                buckets[i].label_mean);
  }
}

}  // namespace

void AddDataFlags(CLI::App& verb, const std::string& name, const std::string& help,
                  DataFlags* flags, const std::string& bad_records_of) {
  verb.add_option(name, flags->patterns, help)->required()->type_name("GLOB");
  verb.add_option("--batch-size", flags->batch_size, "Rows per batch")
      ->check(CLI::Range(1, 1 << 24));
  verb.add_option("--max-bad-records", flags->max_bad_records,
                  "Leave out and count up to N rows that cannot be read or do not fit the spec" +
                      bad_records_of)
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
}

void AddRejectsFlag(CLI::App& verb, DataFlags* flags) {
  verb.add_option(
          "--rejects", flags->rejects,
          "Keep what --max-bad-records leaves out, one JSON object per line (docs/data.md); "
          "with --workers a folder")
      ->needs("--max-bad-records")
      ->type_name("FILE");
}

absl::StatusOr<std::unique_ptr<train::RejectWriter>> OpenRejects(io::FileSystem& files,
                                                                 const std::string& path) {
  if (path.empty()) return nullptr;
  return train::RejectWriter::Create(files, path);
}

train::RejectRecord RejectInto(train::RejectWriter* writer) {
  if (writer == nullptr) return {};
  return [writer](const data::BadRecord& record) { return writer->Add(record); };
}

std::string LeftOut(uint64_t bad_records) {
  if (bad_records == 0) return "";
  return StrCat(", left out ", bad_records, bad_records == 1 ? " bad record" : " bad records");
}

std::string DescribeFormatFlags(const DataFlags& flags) {
  const std::string format = formats::Describe(flags.format);
  return format.empty() ? "" : StrCat(", ", format);
}

train::InputSpec SequentialInput(const DataFlags& flags, const formats::DataFormat& format,
                                 int default_batch_size) {
  train::InputSpec spec;
  spec.source.patterns = flags.patterns;
  spec.source.held_back = flags.held_back;
  spec.source.format = formats::Override(format, flags.format);
  spec.source.note = flags.note;
  spec.source.schemes = DataSchemes(flags.kafka);
  spec.reader.batch_size = flags.batch_size > 0 ? flags.batch_size : default_batch_size;
  spec.reader.max_bad_records = flags.max_bad_records;
  return spec;
}

std::string CheckNotEmpty(const std::string& value) { return value.empty() ? "is empty" : ""; }

void AddTrainedModelFlags(CLI::App& verb, TrainedModelFlags* flags) {
  verb.add_option("model_dir,--model-dir", flags->run.model_dir, "Folder of a trained model")
      ->required()
      ->check(CheckNotEmpty)
      ->type_name("DIR");
  verb.add_option("--checkpoint", flags->checkpoint,
                  "The weights: a checkpoint such as DIR/model.ckpt-100; best: that of the best "
                  "evaluation during training; the folder of an export (default: the newest of "
                  "--model-dir)")
      ->type_name("PREFIX");
}

void AddFallBackFlag(CLI::App& verb, TrainedModelFlags* flags) {
  verb.add_flag("--fall-back", flags->fall_back,
                "If the newest checkpoint is broken, use the newest intact one, and warn");
}

absl::Status ResolveBest(io::FileSystem& files, TrainedModelFlags* flags) {
  if (flags->checkpoint != "best") return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(flags->checkpoint, checkpoint::FindBest(files, flags->run.model_dir));
  return absl::OkStatus();
}

absl::Status ResolveNewest(io::FileSystem& files, bool fall_back, TrainedModelFlags* flags) {
  MUSTER_RETURN_IF_ERROR(ResolveBest(files, flags));
  if (!flags->checkpoint.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const checkpoint::Found found,
                          checkpoint::FindLatest(files, flags->run.model_dir, /*verify=*/true));
  MUSTER_RETURN_IF_ERROR(score::CheckTrained(found));
  if (!fall_back) MUSTER_RETURN_IF_ERROR(checkpoint::CheckNewest(found));
  if (!found.broken.empty()) {
    std::fprintf(stderr, "warning: %s\n", checkpoint::DescribePassedOver(found).c_str());
  }
  flags->checkpoint = found.prefix;
  return absl::OkStatus();
}

void AddThreadsFlag(CLI::App& verb, train::RunConfig* run) {
  verb.add_option("--threads", run->threads,
                  "Threads that compute a batch, for models with large layers; with another number "
                  "the last digits differ")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
}

void AddTensorFlowFlag(CLI::App& verb, train::RunConfig* run) {
  verb.add_option("--tensorflow", run->tensorflow,
                  "Of an exported Keras model: the folder, virtual environment or interpreter that "
                  "has TensorFlow 2.16 or newer (default: MUSTER_TENSORFLOW, else that of python3)")
      ->type_name("PATH");
}

absl::Status ResolveTensorFlow(const model::ModelSpec& model, train::RunConfig* run) {
  if (!model.exported) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(run->tensorflow, engine::tensorflow::FindTensorFlow(
                                               run->tensorflow, process::CurrentEnvironment()));
  return absl::OkStatus();
}

void AddPrecisionFlag(CLI::App& verb, const std::string& help,
                      std::function<void(engine::Precision)> take) {
  verb.add_option_function<std::string>(
          "--precision",
          [take = std::move(take)](const std::string& name) {
            take(name == "bf16" ? engine::Precision::kBfloat16 : engine::Precision::kFloat32);
          },
          help)
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->type_name("fp32|bf16");
}

std::unique_ptr<checkpoint::Lease> LeaseOn(io::FileSystem& files, const TrainedModelFlags& flags,
                                           std::string* prefix) {
  const std::string holder = flags.reader.empty() ? ProcessName() : flags.reader;
  for (int attempt = 0; attempt < kLeaseAttempts; ++attempt) {
    const absl::StatusOr<std::string> found = flags.checkpoint.empty()
                                                  ? checkpoint::Latest(files, flags.run.model_dir)
                                                  : flags.checkpoint;
    if (!found.ok()) return nullptr;
    // A training does not remove other checkpoints.
    if (!io::Basename(*found).starts_with("model.ckpt-")) return nullptr;
    auto lease = checkpoint::Lease::Acquire(files, *found, holder);
    if (lease.ok()) {
      *prefix = *found;
      return *std::move(lease);
    }
    if (!absl::IsNotFound(lease.status())) return nullptr;
  }
  return nullptr;
}

void WarnIfUntrained(const std::string& prefix) {
  if (!score::IsUntrained(prefix)) return;
  std::fprintf(stderr, "warning: %s has the weights from before the first training step\n",
               prefix.c_str());
}

absl::StatusOr<std::unique_ptr<TrainedModel>> OpenTrainedModel(TrainedModelFlags flags) {
  auto model = std::make_unique<TrainedModel>();
  model->files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec,
                          score::LoadModelDir(*model->files, flags.run.model_dir));
  MUSTER_RETURN_IF_ERROR(ResolveBest(*model->files, &flags));
  MUSTER_ASSIGN_OR_RETURN(model->estimator,
                          train::Estimator::Create(*model->files, model->clock, spec, flags.run));
  model->estimator->set_fall_back(flags.fall_back);
  model->estimator->set_checkpoint(flags.checkpoint);
  std::string leased;
  model->lease = LeaseOn(*model->files, flags, &leased);
  WarnIfUntrained(leased);
  return model;
}

void AddOutputFlags(CLI::App& verb, OutputFlags* flags) {
  verb.add_flag("--json", flags->json, "Results as JSON, one object per line, on stdout");
  verb.add_flag("--quiet", flags->quiet, "No progress and notes; warnings are still shown");
}

train::ProgressStyle MakeStyle(const OutputFlags& flags) {
  if (flags.quiet) return train::ProgressStyle::kNone;
  if (flags.json && isatty(STDERR_FILENO) == 0) return train::ProgressStyle::kJson;
  return train::StyleFor(STDERR_FILENO);
}

void AddHookCallFlags(CLI::App& verb, HookCallFlags* flags) {
  auto* calls = verb.add_option("--hook-calls", flags->wanted,
                                "Hooks that the parent process subscribes to: each call is a line "
                                "of JSON on stdout (docs/formats/hook_calls.md)")
                    ->delimiter(',')
                    ->type_name("CALLS");
  auto* answers = verb.add_option("--hook-answers", flags->answers,
                                  "Descriptor from which the answers to them are read")
                      ->check(CLI::NonNegativeNumber)
                      ->type_name("FD");
  calls->needs(answers)->group(kHidden);
  answers->needs(calls)->group(kHidden);
}

absl::StatusOr<std::shared_ptr<train::HookCalls>> GetHookCalls(const HookCallFlags& flags) {
  if (flags.wanted.empty()) return nullptr;
  return train::HookCalls::Create(flags.wanted, stdout, flags.answers);
}

void AddCalledHook(const std::shared_ptr<train::HookCalls>& calls, train::ModeKeys mode,
                   std::vector<std::shared_ptr<train::Hook>>* hooks) {
  if (calls == nullptr) return;
  if (auto hook = train::NewCalledHook(calls, mode)) hooks->push_back(std::move(hook));
}

nlohmann::ordered_json NumbersJson(const std::vector<metrics::NamedValue>& values) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : values) {
    object[name] = std::isfinite(value) ? nlohmann::ordered_json(value) : nullptr;
  }
  return object;
}

namespace {

// Warns of metrics that are no numbers, which are null in JSON. Buckets without rows are none.
void WarnOfNoNumbers(const std::vector<metrics::NamedValue>& values) {
  constexpr size_t kMostNames = 3;
  std::vector<std::string> names;
  for (const auto& [name, value] : values) {
    if (!std::isfinite(value) && !IsOfBucket(name)) names.push_back(name);
  }
  if (names.empty()) return;
  const size_t more = names.size() - std::min(names.size(), kMostNames);
  names.resize(names.size() - more);
  std::fprintf(
      stderr,
      "warning: no number (null in JSON): %s%s; an AUC needs rows of both classes, and all "
      "metrics need finite predictions (docs/metrics.md)\n",
      absl::StrJoin(names, ", ").c_str(), more == 0 ? "" : StrCat(" and ", more, " more").c_str());
}

}  // namespace

void PrintMetrics(const OutputFlags& flags, const std::string& event,
                  const train::EvalResult& result) {
  WarnOfNoNumbers(result.metrics);
  const std::vector<CalibrationBucket> buckets = FindBuckets(result.metrics);
  if (flags.json) {
    nlohmann::ordered_json object = {
        {"event", event}, {"checkpoint", result.checkpoint}, {"bad_records", result.bad_records}};
    object.update(NumbersJson(result.metrics));
    if (result.training) {
      object["epoch"] = result.training->epoch;
      object["training"] = NumbersJson(result.training->metrics);
    }
    if (result.trained_records) object["trained_records"] = result.trained_records->trained;
    if (!buckets.empty()) object["calibration/buckets"] = JsonBuckets(buckets);
    std::printf("%s\n", object.dump().c_str());
    return;
  }
  size_t width = 0;
  for (const auto& [name, value] : result.metrics) {
    if (!IsOfBucket(name)) width = std::max(width, name.size());
  }
  for (const auto& [name, value] : result.metrics) {
    if (IsOfBucket(name)) continue;
    const bool whole = value == std::floor(value) && std::fabs(value) >= 2;
    const std::string text =
        whole ? absl::StrFormat("%.0f", value) : absl::StrFormat("%.6f", value);
    std::printf("  %-*s  %12s\n", static_cast<int>(width), name.c_str(), text.c_str());
  }
  PrintBuckets(buckets);
}

}  // namespace muster::cli
