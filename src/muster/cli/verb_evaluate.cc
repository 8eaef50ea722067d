#include <unistd.h>

#include <cstdio>
#include <memory>

#include "CLI/CLI.hpp"
#include "muster/cli/cli.h"
#include "muster/cli/model_flags.h"
#include "muster/train/estimator.h"

namespace muster::cli {
namespace {

struct EvaluateFlags {
  TrainedModelFlags trained;
  DataFlags data;
  train::EvalSpec eval = {.steps = std::nullopt};
  metrics::MetricsSpec metrics;
  HookCallFlags calls;
  OutputFlags output;
};

// The model file's settings, with those that flags give in their places.
metrics::MetricsSpec MetricsOf(const EvaluateFlags& flags, metrics::MetricsSpec metrics) {
  const metrics::MetricsSpec& given = flags.metrics;
  if (!given.thresholds.empty()) metrics.thresholds = given.thresholds;
  if (!given.top_k.empty()) metrics.top_k = given.top_k;
  if (given.per_class) metrics.per_class = true;
  if (given.calibration_buckets > 0) metrics.calibration_buckets = given.calibration_buckets;
  return metrics;
}

void AddMetricsFlags(CLI::App& verb, metrics::MetricsSpec* metrics) {
  verb.add_option("--thresholds", metrics->thresholds,
                  "Accuracy, precision and recall at these probabilities, as 0.3,0.7")
      ->delimiter(',');
  verb.add_option("--top-k", metrics->top_k, "Accuracy among the K first classes, as 2,5")
      ->delimiter(',');
  verb.add_flag("--per-class", metrics->per_class, "Metrics of each class by itself");
  verb.add_option("--calibration-buckets", metrics->calibration_buckets,
                  "Means of prediction and label in N buckets of the prediction")
      ->check(CLI::Range(1, 10000));
}

absl::Status RunEvaluate(const EvaluateFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const auto model, OpenTrainedModel(flags.trained));
  train::EvalSpec eval = flags.eval;
  eval.input = SequentialInput(flags.data, kInferenceBatchSize);
  eval.metrics = MetricsOf(flags, model->estimator->model().spec.metrics);
  MUSTER_ASSIGN_OR_RETURN(const auto calls, HookCallsOf(flags.calls));
  AddCalledHook(calls, train::ModeKeys::kEval, &eval.hooks);
  train::EvalResult result;
  {
    train::Progress progress(StyleOf(flags.output), STDERR_FILENO, model->clock);
    MUSTER_ASSIGN_OR_RETURN(result, model->estimator->Evaluate(eval, progress));
  }
  if (!flags.output.json) {
    std::printf("Evaluated %llu examples in %s\n", static_cast<unsigned long long>(result.examples),
                train::FormatDuration(result.seconds).c_str());
  }
  PrintMetrics(flags.output, "evaluated", result.metrics);
  return absl::OkStatus();
}

}  // namespace

void AddEvaluate(CLI::App& app) {
  const auto flags = std::make_shared<EvaluateFlags>();
  CLI::App* verb = app.add_subcommand("evaluate", "Metrics of a trained model on data with labels");
  verb->footer(
      "Example:\n"
      "  muster evaluate --model-dir model --data 'data/test/part-*'");
  AddTrainedModelFlags(*verb, &flags->trained);
  AddDataFlags(*verb, "--data", "CSV, TFRecord or JSON lines: files, globs, or -", &flags->data);
  verb->add_option("--steps", flags->eval.steps, "Batches at most (default: all)")
      ->check(CLI::PositiveNumber);
  verb->add_option("--name", flags->eval.name, "Events go to eval_NAME instead of eval");
  AddMetricsFlags(*verb, &flags->metrics);
  AddThreadsFlag(*verb, &flags->trained.run);
  AddPrecisionFlag(
      *verb, "bf16: large layers in bfloat16, on AMX (default: fp32)",
      [flags](engine::Precision given) { flags->trained.run.inference_precision = given; });
  AddHookCallFlags(*verb, &flags->calls);
  AddOutputFlags(*verb, &flags->output);
  verb->callback([flags] { FailUnlessOk(RunEvaluate(*flags)); });
}

}  // namespace muster::cli
