#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include "absl/strings/match.h"

#include "CLI/CLI.hpp"
#include "muster/base/number_text.h"
#include "muster/cli/common/help.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/output_checks.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/train/model_flags.h"
#include "muster/cli/train/not_finite.h"
#include "muster/cli/train/part_jobs.h"
#include "muster/cli/train/predict_topic.h"
#include "muster/cli/train/verbs.h"
#include "muster/data/batch_stream_reader.h"
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
  std::string group;  // of Kafka
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
      {"tfrecord", score::PredictionFormat::kTfRecord},
      {"batches", score::PredictionFormat::kBatches}};
  score::PredictionWriter::Options options;
  options.path = flags.out;
  options.key = features.key;
  const int key = features.schema.Find(features.key);
  options.numeric_key = key >= 0 && features.schema.fields[key].type == formats::ValueType::kInt;
  if (!flags.format.empty()) {
    options.format = kFormats.at(flags.format);
  } else if (flags.out == "-" || IsTopic(flags.out)) {
    options.format = score::PredictionFormat::kJsonLines;
  } else {
    MUSTER_ASSIGN_OR_RETURN(options.format, score::FormatFor(flags.out));
  }
  return options;
}

// A key is read here for the first time: a training may know nothing of a wrong type.
absl::Status ExplainKey(const PredictFlags& flags, const TrainedModel& model,
                        const absl::Status& failure) {
  const std::string& key = model.estimator->model().spec.features.key;
  if (key.empty() || !absl::StrContains(failure.message(), StrCat("column '", key, "': '"))) {
    return failure;
  }
  return Annotate(
      failure,
      StrCat("the key '", key, "' is of another type: if its values are words, make it a string ",
             "under inputs in ", io::JoinPath(flags.trained.run.model_dir, "model.yaml"),
             ", and in the model file; no weight depends on it"));
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
  spec.input.watch_words = true;
  // A program that reads answers may wait for them before it sends more rows.
  spec.input.batch_by_batch = options.format == score::PredictionFormat::kBatches;
  MUSTER_ASSIGN_OR_RETURN(const auto calls, GetHookCalls(flags.calls));
  AddCalledHook(calls, train::ModeKeys::kPredict, &spec.hooks);
  Predicted predicted;
  NotFinite not_finite;
  {
    train::Progress progress(MakeStyle(flags.output), STDERR_FILENO, model.clock);
    // Rows that a program sends may not come for a long time, and standard output keeps what it
    // got: there a signal ends the process at once.
    std::optional<InterruptScope> interrupt;
    if (options.path != "-" && !data::IsBatchStream(spec.input.source)) interrupt.emplace();
    const auto write = [&](const train::InputBatch& batch, const engine::Predictions& predictions) {
      if (interrupt && InterruptScope::requested()) {
        return absl::CancelledError(StrCat("stopped by ", InterruptScope::StoppedBy(), "; ",
                                           options.path, " was not written"));
      }
      not_finite.Look(batch.keys, predictions);
      MUSTER_RETURN_IF_ERROR(writer->Write(batch.keys, predictions));
      // The rows must be written before the next batch's calls.
      return calls == nullptr ? absl::OkStatus() : writer->Flush();
    };
    auto result = model.estimator->Predict(spec, write, progress);
    if (!result.ok()) return ExplainKey(flags, model, result.status());
    predicted.result = *std::move(result);
    predicted.seconds = progress.seconds();
  }
  // Closed first: if there are predictions, there are also their rejects.
  if (rejects != nullptr) MUSTER_RETURN_IF_ERROR(rejects->Close());
  MUSTER_RETURN_IF_ERROR(writer->Close());
  not_finite.Warn();
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
    const std::string with =
        result.checkpoint.empty() ? "" : StrCat(" with ", result.checkpoint);  // no new records
    std::fprintf(stream, "Predicted %llu examples%s in %s to %s%s\n",
                 static_cast<unsigned long long>(result.examples), with.c_str(),
                 FormatDuration(predicted.seconds).c_str(),
                 out == "-" ? "standard output" : out.c_str(), LeftOut(result.bad_records).c_str());
  }
}

// As one task of several, if flags.parts says so.
absl::Status RunIntoTopic(PredictFlags flags) {
  const bool is_task = flags.parts.task >= 0;
  flags.trained.reader = DescribeReader("predict", flags.parts);
  MUSTER_ASSIGN_OR_RETURN(const auto model, OpenTrainedModel(flags.trained));
  MUSTER_ASSIGN_OR_RETURN(const auto options,
                          WriterOptions(flags, model->estimator->model().spec.features));
  std::string rejects_path = flags.data.rejects;
  if (is_task) {
    score::PartPlan tasks;
    tasks.parts = flags.parts.workers;
    MUSTER_ASSIGN_OR_RETURN(rejects_path,
                            RejectsPath(*model->files, rejects_path, tasks, flags.parts.task));
  }
  MUSTER_ASSIGN_OR_RETURN(const auto rejects, OpenRejects(*model->files, rejects_path));
  Predicted predicted;
  {
    train::Progress progress(MakeStyle(flags.output), STDERR_FILENO, model->clock);
    MUSTER_ASSIGN_OR_RETURN(predicted.result,
                            PredictIntoTopic({.data = flags.data,
                                              .out = flags.out,
                                              .group = flags.group,
                                              .rows = options,
                                              .parts = flags.parts,
                                              .reject = RejectInto(rejects.get())},
                                             *model, progress));
    predicted.seconds = progress.seconds();
  }
  if (rejects != nullptr) MUSTER_RETURN_IF_ERROR(rejects->Close());
  PrintPredicted(flags, predicted, flags.out);
  return absl::OkStatus();
}

absl::Status RunPredict(const PredictFlags& flags) {
  if (flags.format.empty() && flags.out != "-") {
    RefuseUnlessOk(score::FormatFor(flags.out).status());
  }
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
      .schemes = DataSchemes(flags.data.kafka),
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
  return score::OpenPartPlan(
      files, flags.out, wanted,
      {.patterns = options.patterns, .format = options.format, .schemes = options.schemes});
}

// Makes those parts of this worker that are not done.
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
  if (flags.parts.workers == 1 && !flags.parts.is_elsewhere()) {
    flags.trained.checkpoint = plan.checkpoint;
    return RunTask(std::move(flags));
  }
  return RunPartJob("predict", flags.parts, arguments, plan.checkpoint, stdout, [&] {
    score::RemoveUnusedPlan(*files, flags.out).IgnoreError();  // the job's error counts
  });
}

// Runs a job whose tasks take the partitions in turn. Their ranges and the checkpoint are those of
// now.
absl::Status RunTopicTasks(PredictFlags flags, std::vector<std::string> arguments) {
  const auto files = files::OpenFileSystems();
  MUSTER_RETURN_IF_ERROR(ResolveNewest(*files, flags.trained.fall_back, &flags.trained));
  std::string leased;  // held until the last worker that was started again has read it
  const auto lease = LeaseOn(*files, flags.trained, &leased);
  MUSTER_RETURN_IF_ERROR(FixRanges(&flags.data, &arguments));
  return RunPartJob("predict", flags.parts, arguments,
                    leased.empty() ? flags.trained.checkpoint : leased, stdout);
}

// Runs until the rows are written. A reader that leaves (| head -1) ends the process as SIGPIPE
// does, but only after the checkpoint's lease has been given back.
absl::Status RunToStandardOutput(const PredictFlags& flags) {
  std::signal(SIGPIPE, [](int) {});
  absl::Status result = RunPredict(flags);
  std::signal(SIGPIPE, SIG_DFL);
  if (absl::IsCancelled(result)) std::raise(SIGPIPE);
  return result;
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
  AddKafkaFlags(*verb, &flags->data.kafka);
  verb->add_option(
          "--out", flags->out,
          "FILE.csv, FILE.jsonl, FILE.tfrecord, FILE.batches, or - for JSON lines on stdout; with "
          "--workers a folder; or a topic, kafka://BROKER/TOPIC, for the records of topics")
      ->required()
      ->type_name("FILE");
  verb->add_option("--format", flags->format,
                   "The format of --out, if its name does not show it (default of a folder: csv)")
      ->check(CLI::IsMember({"csv", "jsonl", "tfrecord", "batches"}));
  verb->add_option(
          "--group", flags->group,
          "With --out kafka://...: the consumer group that keeps what was predicted, so that "
          "the same command continues (docs/kafka.md)")
      ->type_name("NAME");
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
  Group(*verb, kMoreData, {"--max-bad-records", "--rejects", "--group"});
  Group(*verb, kMoreModel, {"--fall-back", "--tensorflow", "--precision"});
  Group(*verb, kProcesses, {"--workers"});
  Group(*verb, kMoreProcesses, {"--task", "--restarts", "--job"});
  verb->callback([=] {
    if (flags->output.quiet) flags->data.note = nullptr;
    const auto files = files::OpenFileSystems();
    CheckRejectsPlace(*files, flags->data.rejects, flags->out);
    const bool in_parts = flags->parts.workers > 0;
    RefuseUnlessOk(CheckNotData(
        *files, flags->data.patterns,
        {{"--out", flags->out, in_parts}, {"--rejects", flags->data.rejects, in_parts}}));
    if (IsTopic(flags->out)) {
      RefuseUnlessOk(CheckTopicPrediction(flags->data, flags->out, flags->group));
      const PartFlags& parts = flags->parts;
      if (!flags->calls.wanted.empty()) {
        RefuseUnlessOk(
            absl::InvalidArgumentError("--hook-calls: a prediction into a topic has none"));
      }
      if (in_parts) RefuseUnlessOk(CheckParts(*files, parts, flags->data, flags->calls));
      const bool is_job = in_parts && parts.task < 0 && (parts.workers > 1 || parts.is_elsewhere());
      return FailUnlessOk(is_job ? RunTopicTasks(*flags, arguments) : RunIntoTopic(*flags));
    }
    if (!in_parts) {
      return FailUnlessOk(flags->out == "-" ? RunToStandardOutput(*flags) : RunPredict(*flags));
    }
    if (flags->out == "-") {
      RefuseUnlessOk(
          absl::InvalidArgumentError("--out -: with --workers give a folder for the parts"));
    }
    RefuseUnlessOk(CheckParts(*files, flags->parts, flags->data, flags->calls));
    RefuseUnlessOk(CheckPartPath(flags->parts, "--out", flags->out));
    RefuseUnlessOk(CheckPartPath(flags->parts, "MODEL", flags->trained.run.model_dir));
    FailUnlessOk(flags->parts.task >= 0 ? RunTask(*flags) : RunParts(*flags, arguments));
  });
}

}  // namespace muster::cli
