#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>

#include "CLI/CLI.hpp"
#include "muster/cli/cli.h"
#include "muster/cli/model_flags.h"
#include "muster/train/estimator.h"
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

absl::Status RunPredict(const PredictFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const auto model, OpenTrainedModel(flags.trained));
  MUSTER_ASSIGN_OR_RETURN(const auto options,
                          WriterOptions(flags, model->estimator->model().spec.features));
  MUSTER_ASSIGN_OR_RETURN(
      const auto writer,
      train::PredictionWriter::Create(*model->files, options, model->estimator->predictor()));
  train::PredictSpec spec{.input = SequentialInput(flags.data, kInferenceBatchSize)};
  spec.input.with_labels = false;
  spec.input.with_keys = true;
  MUSTER_ASSIGN_OR_RETURN(const auto calls, HookCallsOf(flags.calls));
  AddCalledHook(calls, train::ModeKeys::kPredict, &spec.hooks);
  uint64_t examples = 0;
  double seconds = 0;
  {
    train::Progress progress(StyleOf(flags.output), STDERR_FILENO, model->clock);
    const auto write = [&](const train::InputBatch& batch, const engine::Predictions& predictions) {
      MUSTER_RETURN_IF_ERROR(writer->Write(batch.keys, predictions));
      // Rows come before the next batch's calls.
      return calls == nullptr ? absl::OkStatus() : writer->Flush();
    };
    MUSTER_ASSIGN_OR_RETURN(examples, model->estimator->Predict(spec, write, progress));
    seconds = progress.seconds();
  }
  MUSTER_RETURN_IF_ERROR(writer->Close());
  if (flags.out == "-") return absl::OkStatus();
  if (flags.output.json) {
    const nlohmann::ordered_json object = {
        {"event", "predicted"}, {"examples", examples}, {"seconds", seconds}, {"out", flags.out}};
    std::printf("%s\n", object.dump().c_str());
  } else {
    std::printf("Predicted %llu examples in %s to %s\n", static_cast<unsigned long long>(examples),
                train::FormatDuration(seconds).c_str(), flags.out.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddPredict(CLI::App& app) {
  const auto flags = std::make_shared<PredictFlags>();
  CLI::App* verb = app.add_subcommand("predict", "Score rows, keeping their keys");
  verb->footer(
      "Labels are not needed. Rows come out in their order, with the spec's key or their number.\n"
      "Example:\n"
      "  muster predict --model-dir model --data test.csv --out predictions.csv");
  AddTrainedModelFlags(*verb, &flags->trained);
  AddDataFlags(*verb, "--data", "CSV, TFRecord or JSON lines: files, globs, or -", &flags->data);
  verb->add_option("--out", flags->out, "FILE.csv, FILE.jsonl, FILE.tfrecord, or - for stdout")
      ->required()
      ->type_name("FILE");
  verb->add_option("--format", flags->format, "When the name does not tell")
      ->check(CLI::IsMember({"csv", "jsonl", "tfrecord"}));
  AddThreadsFlag(*verb, &flags->trained.run);
  AddPrecisionFlag(
      *verb, "bf16: large layers in bfloat16, on AMX (default: fp32)",
      [flags](engine::Precision given) { flags->trained.run.inference_precision = given; });
  AddHookCallFlags(*verb, &flags->calls);
  AddOutputFlags(*verb, &flags->output);
  verb->callback([flags] { FailUnlessOk(RunPredict(*flags)); });
}

}  // namespace muster::cli
