#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "CLI/CLI.hpp"
#include "muster/cli/cli.h"
#include "muster/cli/job_client.h"
#include "muster/cli/job_flags.h"
#include "muster/cli/model_flags.h"
#include "muster/cli/run_here.h"
#include "muster/io/local_file_system.h"
#include "muster/train/estimator.h"
#include "muster/train/part_plan.h"
#include "muster/train/prediction_writer.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

struct PredictFlags {
  TrainedModelFlags trained;
  DataFlags data;
  std::string out;
  std::string format;
  HookCallFlags calls;
  OutputFlags output;
  // Of a prediction in parts.
  int workers = 0;  // 0: none
  int task = -1;    // which of the workers this is; -1: who starts them
  int restarts = 3;
  std::string job;
};

struct Predicted {
  uint64_t examples = 0;
  double seconds = 0;
};

absl::StatusOr<train::PredictionWriter::Options> WriterOptions(
    const PredictFlags& flags, const features::FeatureSpec& features) {
  static const std::map<std::string, train::PredictionFormat> kFormats = {
      {"csv", train::PredictionFormat::kCsv},
      {"jsonl", train::PredictionFormat::kJsonLines},
      {"tfrecord", train::PredictionFormat::kTfRecord}};
  train::PredictionWriter::Options options;
  options.path = flags.out;
  options.key = features.key;
  const int key = features.schema.Find(features.key);
  options.numeric_key = key >= 0 && features.schema.fields[key].type == formats::ValueType::kInt;
  if (!flags.format.empty()) {
    options.format = kFormats.at(flags.format);
  } else if (flags.out == "-") {
    options.format = train::PredictionFormat::kJsonLines;
  } else {
    MUSTER_ASSIGN_OR_RETURN(options.format, train::FormatFor(flags.out));
  }
  return options;
}

absl::StatusOr<Predicted> PredictInto(const PredictFlags& flags, TrainedModel& model,
                                      const train::PredictionWriter::Options& options,
                                      const data::Shard& shard) {
  MUSTER_ASSIGN_OR_RETURN(
      const auto writer,
      train::PredictionWriter::Create(*model.files, options, model.estimator->predictor()));
  train::PredictSpec spec{.input = SequentialInput(flags.data, kInferenceBatchSize)};
  spec.input.source.shard = shard;
  spec.input.with_labels = false;
  spec.input.with_keys = true;
  MUSTER_ASSIGN_OR_RETURN(const auto calls, HookCallsOf(flags.calls));
  AddCalledHook(calls, train::ModeKeys::kPredict, &spec.hooks);
  Predicted predicted;
  {
    train::Progress progress(StyleOf(flags.output), STDERR_FILENO, model.clock);
    const auto write = [&](const train::InputBatch& batch, const engine::Predictions& predictions) {
      MUSTER_RETURN_IF_ERROR(writer->Write(batch.keys, predictions));
      // Rows come before the next batch's calls.
      return calls == nullptr ? absl::OkStatus() : writer->Flush();
    };
    MUSTER_ASSIGN_OR_RETURN(predicted.examples, model.estimator->Predict(spec, write, progress));
    predicted.seconds = progress.seconds();
  }
  MUSTER_RETURN_IF_ERROR(writer->Close());
  return predicted;
}

void PrintPredicted(const PredictFlags& flags, const Predicted& predicted, const std::string& out) {
  if (flags.output.json) {
    const nlohmann::ordered_json object = {{"event", "predicted"},
                                           {"examples", predicted.examples},
                                           {"seconds", predicted.seconds},
                                           {"out", out}};
    std::printf("%s\n", object.dump().c_str());
  } else {
    std::printf("Predicted %llu examples in %s to %s\n",
                static_cast<unsigned long long>(predicted.examples),
                train::FormatDuration(predicted.seconds).c_str(), out.c_str());
  }
}

absl::Status RunPredict(const PredictFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const auto model, OpenTrainedModel(flags.trained));
  MUSTER_ASSIGN_OR_RETURN(const auto options,
                          WriterOptions(flags, model->estimator->model().spec.features));
  MUSTER_ASSIGN_OR_RETURN(const Predicted predicted,
                          PredictInto(flags, *model, options, data::Shard()));
  if (flags.out != "-") PrintPredicted(flags, predicted, flags.out);
  return absl::OkStatus();
}

absl::Status CheckParts(const PredictFlags& flags) {
  const std::vector<std::string>& patterns = flags.data.patterns;
  if (std::find(patterns.begin(), patterns.end(), "-") != patterns.end()) {
    return absl::InvalidArgumentError(
        "--data -: what comes through one pipe cannot be dealt to --workers; give files");
  }
  if (flags.out == "-") {
    return absl::InvalidArgumentError("--out -: with --workers give a folder for the parts");
  }
  if (!flags.calls.wanted.empty()) {
    return absl::InvalidArgumentError("--hook-calls: --workers have no hooks");
  }
  if (flags.task >= flags.workers) {
    return absl::InvalidArgumentError(StrCat("--task ", flags.task, ": the last of ", flags.workers,
                                             " workers is ", flags.workers - 1));
  }
  return absl::OkStatus();
}

absl::StatusOr<train::PartPlan> PlanOf(const PredictFlags& flags, io::FileSystem& files) {
  const std::string format = flags.format.empty() ? "csv" : flags.format;
  const bool exact = flags.trained.run.inference_precision == engine::Precision::kFloat32;
  train::PartPlanOptions options = {
      .patterns = flags.data.patterns,
      .model_dir = flags.trained.run.model_dir,
      .checkpoint = flags.trained.checkpoint,
      .settings = StrCat(format, ", ", exact ? "fp32" : "bf16", ", at most ",
                         flags.data.max_bad_records, " bad records a part"),
      .suffix = "." + format,
      .processes = flags.workers};
  MUSTER_ASSIGN_OR_RETURN(const train::PartPlan wanted, train::MakePartPlan(files, options));
  return train::OpenPartPlan(files, flags.out, wanted);
}

// Those of its parts that are not there. A signal ends it at once: what it has not finished has no
// name yet.
absl::Status RunTask(PredictFlags flags) {
  const auto files = io::NewLocalFileSystem();
  MUSTER_ASSIGN_OR_RETURN(const train::PartPlan plan, PlanOf(flags, *files));
  flags.trained.checkpoint = plan.checkpoint;
  MUSTER_ASSIGN_OR_RETURN(const auto model, OpenTrainedModel(flags.trained));
  for (int part = std::max(flags.task, 0); part < plan.parts; part += flags.workers) {
    MUSTER_ASSIGN_OR_RETURN(const bool done, train::PartIsDone(*files, flags.out, plan, part));
    if (done) continue;
    flags.format = plan.suffix.substr(1);
    MUSTER_ASSIGN_OR_RETURN(auto options,
                            WriterOptions(flags, model->estimator->model().spec.features));
    options.path = train::PartPath(flags.out, plan, part);
    MUSTER_ASSIGN_OR_RETURN(const Predicted predicted,
                            PredictInto(flags, *model, options, plan.ShardOf(part)));
    PrintPredicted(flags, predicted, options.path);
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

// A task of a job for each worker, and what is there when all have ended.
absl::Status RunParts(const PredictFlags& flags, const std::vector<std::string>& arguments) {
  const auto files = io::NewLocalFileSystem();
  MUSTER_ASSIGN_OR_RETURN(const train::PartPlan plan, PlanOf(flags, *files));
  int missing = 0;
  for (int part = 0; part < plan.parts; ++part) {
    MUSTER_ASSIGN_OR_RETURN(const bool done, train::PartIsDone(*files, flags.out, plan, part));
    missing += done ? 0 : 1;
  }
  if (missing < plan.parts) {
    SayOfJob(
        StrCat(flags.out, " has ", plan.parts - missing, " of ", plan.parts, " parts; they stay"));
  }
  if (missing == 0) return absl::OkStatus();
  if (flags.workers == 1) return RunTask(flags);
  MUSTER_ASSIGN_OR_RETURN(const std::string program, OwnProgram());
  JobFlags job;
  job.workers = flags.workers;
  job.name = flags.job;
  job.restarts = flags.restarts;
  job.restart_scope = "task";
  job.command = {program, "predict", "--task", "{index}"};
  job.command.insert(job.command.end(), arguments.begin(), arguments.end());
  MUSTER_ASSIGN_OR_RETURN(const auto access, AccessOf(job));
  MUSTER_ASSIGN_OR_RETURN(JobRequest request, RequestOf(job));
  request.spec.all_workers = true;
  return StartJob(request, access, /*detach=*/false);
}

}  // namespace

void AddPredict(CLI::App& app, const std::vector<std::string>& arguments) {
  const auto flags = std::make_shared<PredictFlags>();
  CLI::App* verb = app.add_subcommand("predict", "Score rows, keeping their keys");
  verb->footer(
      "Labels are not needed. Rows come out in their order, with the spec's key or their number.\n"
      "Example:\n"
      "  muster predict --model-dir model --data test.csv --out predictions.csv\n"
      "In parts, by processes that may die; the same command makes what is missing:\n"
      "  muster predict --model-dir model --data 'data/test/part-*' --out predictions --workers 2");
  AddTrainedModelFlags(*verb, &flags->trained);
  AddDataFlags(*verb, "--data", "CSV, TFRecord or JSON lines: files, globs, or -", &flags->data);
  verb->add_option("--out", flags->out,
                   "FILE.csv, FILE.jsonl, FILE.tfrecord, or - for stdout; with --workers a folder")
      ->required()
      ->type_name("FILE");
  verb->add_option("--format", flags->format, "When the name does not tell (a folder: csv)")
      ->check(CLI::IsMember({"csv", "jsonl", "tfrecord"}));
  AddThreadsFlag(*verb, &flags->trained.run);
  AddPrecisionFlag(
      *verb, "bf16: large layers in bfloat16, on AMX (default: fp32)",
      [flags](engine::Precision given) { flags->trained.run.inference_precision = given; });
  AddHookCallFlags(*verb, &flags->calls);
  AddOutputFlags(*verb, &flags->output);
  auto* workers =
      verb->add_option("--workers", flags->workers,
                       "Processes that predict, each its parts of the data: a job of this machine "
                       "(docs/distributed.md)")
          ->check(CLI::Range(1, 1000));
  verb->add_option("--task", flags->task,
                   "Be that one of the workers, 0 to N - 1, for a launcher of one's own")
      ->check(CLI::NonNegativeNumber)
      ->needs(workers);
  verb->add_option("--restarts", flags->restarts, "Of each worker that dies, at most")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->needs(workers);
  verb->add_option("--job", flags->job, "The job's name, for muster status")->needs(workers);
  verb->callback([=] {
    if (flags->workers == 0) return FailUnlessOk(RunPredict(*flags));
    FailUnlessOk(CheckParts(*flags));
    if (flags->task >= 0) return FailUnlessOk(RunTask(*flags));
    FailUnlessOk(RunParts(*flags, WithoutFlags(arguments, {"--restarts", "--job"})));
  });
}

}  // namespace muster::cli
