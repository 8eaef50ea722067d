#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "CLI/CLI.hpp"
#include "muster/base/number_text.h"
#include "muster/cli/common/help.h"
#include "muster/cli/common/output_checks.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/train/model_flags.h"
#include "muster/cli/train/part_jobs.h"
#include "muster/cli/train/verbs.h"
#include "muster/files/file_systems.h"
#include "muster/score/inference.h"
#include "muster/score/part_plan.h"
#include "muster/score/prediction_writer.h"
#include "muster/train/estimator.h"
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
  PartFlags parts;
};

struct Predicted {
  train::PredictResult result = {};
  double seconds = 0;
};

absl::StatusOr<score::PredictionWriter::Options> WriterOptions(
    const PredictFlags& flags, const features::FeatureSpec& features) {
  static const std::map<std::string, score::PredictionFormat> kFormats = {
      {"csv", score::PredictionFormat::kCsv},
      {"jsonl", score::PredictionFormat::kJsonLines},
      {"tfrecord", score::PredictionFormat::kTfRecord}};
  score::PredictionWriter::Options options;
  options.path = flags.out;
  options.key = features.key;
  const int key = features.schema.Find(features.key);
  options.numeric_key = key >= 0 && features.schema.fields[key].type == formats::ValueType::kInt;
  if (!flags.format.empty()) {
    options.format = kFormats.at(flags.format);
  } else if (flags.out == "-") {
    options.format = score::PredictionFormat::kJsonLines;
  } else {
    MUSTER_ASSIGN_OR_RETURN(options.format, score::FormatFor(flags.out));
  }
  return options;
}

absl::StatusOr<Predicted> PredictInto(const PredictFlags& flags, TrainedModel& model,
                                      const score::PredictionWriter::Options& options,
                                      const std::string& rejects_path,
                                      const data::Shard& shard = {}, uint64_t first_number = 0) {
  MUSTER_ASSIGN_OR_RETURN(
      const auto writer,
      score::PredictionWriter::Create(*model.files, options, model.estimator->predictor()));
  MUSTER_ASSIGN_OR_RETURN(const auto rejects, OpenRejects(*model.files, rejects_path));
  train::PredictSpec spec{.input = SequentialInput(flags.data, model.estimator->model().spec.format,
                                                   kInferenceBatchSize),
                          .reject = RejectInto(rejects.get())};
  spec.input.source.shard = shard;
  spec.input.source.first_number = first_number;
  spec.input.source.may_be_empty = true;
  spec.input.with_labels = false;
  spec.input.with_keys = true;
  MUSTER_ASSIGN_OR_RETURN(const auto calls, GetHookCalls(flags.calls));
  AddCalledHook(calls, train::ModeKeys::kPredict, &spec.hooks);
  Predicted predicted;
  {
    train::Progress progress(MakeStyle(flags.output), STDERR_FILENO, model.clock);
    const auto write = [&](const train::InputBatch& batch, const engine::Predictions& predictions) {
      MUSTER_RETURN_IF_ERROR(writer->Write(batch.keys, predictions));
      // The rows must be written before the next batch's calls.
      return calls == nullptr ? absl::OkStatus() : writer->Flush();
    };
    MUSTER_ASSIGN_OR_RETURN(predicted.result, model.estimator->Predict(spec, write, progress));
    predicted.seconds = progress.seconds();
  }
  // Closed first: if there are predictions, there are also their rejects.
  if (rejects != nullptr) MUSTER_RETURN_IF_ERROR(rejects->Close());
  MUSTER_RETURN_IF_ERROR(writer->Close());
  return predicted;
}

// Prints to stdout, or to stderr if stdout has the predictions.
void PrintPredicted(const PredictFlags& flags, const Predicted& predicted, const std::string& out) {
  const train::PredictResult& result = predicted.result;
  std::FILE* const stream = out == "-" ? stderr : stdout;
  if (out == "-" && flags.output.quiet) return;
  if (flags.output.json) {
    const nlohmann::ordered_json object = {{"event", "predicted"},
                                           {"examples", result.examples},
                                           {"bad_records", result.bad_records},
                                           {"seconds", predicted.seconds},
                                           {"checkpoint", result.checkpoint},
                                           {"out", out}};
    std::fprintf(stream, "%s\n", object.dump().c_str());
  } else {
    std::fprintf(stream, "Predicted %llu examples with %s in %s to %s%s\n",
                 static_cast<unsigned long long>(result.examples), result.checkpoint.c_str(),
                 FormatDuration(predicted.seconds).c_str(),
                 out == "-" ? "standard output" : out.c_str(), LeftOut(result.bad_records).c_str());
  }
}

absl::Status RunPredict(const PredictFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const auto model, OpenTrainedModel(flags.trained));
  MUSTER_ASSIGN_OR_RETURN(const auto options,
                          WriterOptions(flags, model->estimator->model().spec.features));
  MUSTER_ASSIGN_OR_RETURN(const Predicted predicted,
                          PredictInto(flags, *model, options, flags.data.rejects));
  PrintPredicted(flags, predicted, flags.out);
  return absl::OkStatus();
}

absl::StatusOr<score::PartPlan> MakePlan(const PredictFlags& flags, const std::string& checkpoint,
                                         io::FileSystem& files) {
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec,
                          score::LoadModelDir(files, flags.trained.run.model_dir));
  const bool numbered = spec.features.key.empty();
  const std::string rejects =
      flags.data.rejects.empty() ? "" : StrCat(", kept in ", flags.data.rejects);
  const std::string format = flags.format.empty() ? "csv" : flags.format;
  const bool exact = flags.trained.run.inference_precision == engine::Precision::kFloat32;
  score::PartPlanOptions options = {
      .patterns = flags.data.patterns,
      .format = SequentialInput(flags.data, spec.format, kInferenceBatchSize).source.format,
      .model_dir = flags.trained.run.model_dir,
      .checkpoint = checkpoint.empty() ? flags.trained.checkpoint : checkpoint,
      .settings = StrCat(format, ", ", exact ? "fp32" : "bf16", ", at most ",
                         flags.data.max_bad_records, " bad records a part", rejects,
                         numbered ? ", rows numbered" : "", DescribeFormatFlags(flags.data)),
      .suffix = "." + format,
      .processes = flags.parts.workers,
      .numbered = numbered};
  MUSTER_ASSIGN_OR_RETURN(const score::PartPlan wanted, score::MakePartPlan(files, options));
  return score::OpenPartPlan(files, flags.out, wanted,
                             {.patterns = options.patterns, .format = options.format});
}

// Makes those parts of this worker that are not done. A signal ends it at once: an unfinished part
// has no name yet.
absl::Status RunTask(PredictFlags flags) {
  const auto files = files::OpenFileSystems();
  MUSTER_RETURN_IF_ERROR(ResolveNewest(*files, flags.trained.fall_back, &flags.trained));
  MUSTER_ASSIGN_OR_RETURN(const score::PartPlan plan, MakePlan(flags, "", *files));
  flags.trained.checkpoint = plan.checkpoint;
  flags.trained.reader = DescribeReader("predict", flags.parts);
  MUSTER_ASSIGN_OR_RETURN(const auto model, OpenTrainedModel(flags.trained));
  for (int part = std::max(flags.parts.task, 0); part < plan.parts; part += flags.parts.workers) {
    MUSTER_ASSIGN_OR_RETURN(const bool done, score::PartIsDone(*files, flags.out, plan, part));
    if (done) continue;
    flags.format = plan.suffix.substr(1);
    MUSTER_ASSIGN_OR_RETURN(auto options,
                            WriterOptions(flags, model->estimator->model().spec.features));
    options.path = score::PartPath(flags.out, plan, part);
    MUSTER_ASSIGN_OR_RETURN(const std::string rejects,
                            RejectsPath(*files, flags.data.rejects, plan, part));
    MUSTER_ASSIGN_OR_RETURN(const Predicted predicted,
                            PredictInto(flags, *model, options, rejects, plan.GetShard(part),
                                        plan.GetFirstNumber(part)));
    PrintPredicted(flags, predicted, options.path);
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

// Runs a job with a task for each worker, and reports the parts that exist when all have ended.
absl::Status RunParts(PredictFlags flags, const std::vector<std::string>& arguments) {
  const auto files = files::OpenFileSystems();
  MUSTER_RETURN_IF_ERROR(ResolveNewest(*files, flags.trained.fall_back, &flags.trained));
  std::string leased;  // held until the last worker that was started again has read it
  const auto lease = LeaseOn(*files, flags.trained, &leased);
  MUSTER_ASSIGN_OR_RETURN(const score::PartPlan plan, MakePlan(flags, leased, *files));
  MUSTER_ASSIGN_OR_RETURN(const auto done, PartsDone(*files, flags.out, plan));
  PrintDoneParts(flags.out, done);
  if (std::find(done.begin(), done.end(), false) == done.end()) return absl::OkStatus();
  if (flags.parts.workers == 1) {
    flags.trained.checkpoint = plan.checkpoint;
    return RunTask(std::move(flags));
  }
  return RunPartJob("predict", flags.parts, arguments, plan, stdout);
}

}  // namespace

void AddPredict(CLI::App& app, const std::vector<std::string>& arguments) {
  const auto flags = std::make_shared<PredictFlags>();
  CLI::App* verb = app.add_subcommand("predict", "Score rows, keeping their keys");
  verb->footer(
      "Labels are not needed. Rows are written in their order, with the spec's key or the number "
      "of\n"
      "the record in all of the data, from 0; one that is left out keeps its number.\n"
      "Example:\n"
      "  muster predict model --data test.csv --out predictions.csv\n"
      "In parts, with processes that may die; the same command makes the missing parts:\n"
      "  muster predict model --data 'data/test/part-*' --out predictions --workers 2");
  AddTrainedModelFlags(*verb, &flags->trained);
  AddFallBackFlag(*verb, &flags->trained);
  AddDataFlags(*verb, "--data",
               "CSV, TFRecord or JSON lines: files, globs, or - for batches of a program",
               &flags->data, "; with --workers, of each part");
  AddRejectsFlag(*verb, &flags->data);
  AddFormatFlags(*verb, &flags->data.format);
  verb->add_option("--out", flags->out,
                   "FILE.csv, FILE.jsonl, FILE.tfrecord, or - for stdout; with --workers a folder")
      ->required()
      ->type_name("FILE");
  verb->add_option("--format", flags->format,
                   "The format of --out, if its name does not show it (default of a folder: csv)")
      ->check(CLI::IsMember({"csv", "jsonl", "tfrecord"}));
  AddThreadsFlag(*verb, &flags->trained.run);
  AddTensorFlowFlag(*verb, &flags->trained.run);
  AddPrecisionFlag(
      *verb, "bf16: large layers in bfloat16, on AMX (default: fp32)",
      [flags](engine::Precision given) { flags->trained.run.inference_precision = given; });
  AddHookCallFlags(*verb, &flags->calls);
  AddOutputFlags(*verb, &flags->output);
  AddPartFlags(*verb,
               "Processes that predict, each some parts of the data: a job on this machine "
               "(docs/distributed.md)",
               &flags->parts);
  Group(*verb, kData, {"--data", "--batch-size", "--out", "--format"});
  Group(*verb, kMoreData, {"--max-bad-records", "--rejects"});
  Group(*verb, kMoreModel, {"--fall-back", "--tensorflow", "--precision"});
  Group(*verb, kProcesses, {"--workers"});
  Group(*verb, kMoreProcesses, {"--task", "--restarts", "--job"});
  verb->callback([=] {
    const auto files = files::OpenFileSystems();
    CheckRejectsPlace(*files, flags->data.rejects, flags->out);
    const bool in_parts = flags->parts.workers > 0;
    RefuseUnlessOk(CheckNotData(
        *files, flags->data.patterns,
        {{"--out", flags->out, in_parts}, {"--rejects", flags->data.rejects, in_parts}}));
    if (!in_parts) return FailUnlessOk(RunPredict(*flags));
    if (flags->out == "-") {
      RefuseUnlessOk(
          absl::InvalidArgumentError("--out -: with --workers give a folder for the parts"));
    }
    RefuseUnlessOk(CheckParts(flags->parts, flags->data, flags->calls));
    FailUnlessOk(flags->parts.task >= 0 ? RunTask(*flags) : RunParts(*flags, arguments));
  });
}

}  // namespace muster::cli
