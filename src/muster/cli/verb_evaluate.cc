#include <unistd.h>

#include <cstdio>
#include <memory>

#include "CLI/CLI.hpp"
#include "muster/cli/cli.h"
#include "muster/cli/model_flags.h"
#include "muster/io/local_file_system.h"
#include "muster/train/estimator.h"

namespace muster::cli {
namespace {

struct EvaluateFlags {
  train::RunConfig run;
  DataFlags data;
  train::EvalSpec eval;
  OutputFlags output;
};

absl::Status RunEvaluate(const EvaluateFlags& flags) {
  const auto files = io::NewLocalFileSystem();
  const SystemClock clock;
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec,
                          train::LoadModelDir(*files, flags.run.model_dir));
  MUSTER_ASSIGN_OR_RETURN(const auto estimator,
                          train::Estimator::Create(*files, clock, spec, flags.run));
  train::EvalSpec eval = flags.eval;
  eval.input = SequentialInput(flags.data, kInferenceBatchSize);
  train::EvalResult result;
  {
    train::Progress progress(StyleOf(flags.output), STDERR_FILENO, clock);
    MUSTER_ASSIGN_OR_RETURN(result, estimator->Evaluate(eval, progress));
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
  verb->add_option("--model-dir", flags->run.model_dir, "Folder of a trained model")
      ->required()
      ->type_name("DIR");
  AddDataFlags(*verb, "--data", "CSV or TFRecord files or globs", &flags->data);
  verb->add_option("--steps", flags->eval.steps, "Batches at most (default: all)")
      ->check(CLI::PositiveNumber);
  verb->add_option("--name", flags->eval.name, "Events go to eval_NAME instead of eval");
  verb->add_option("--threads", flags->run.threads, "Threads that compute a batch")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  AddOutputFlags(*verb, &flags->output);
  verb->callback([flags] { FailUnlessOk(RunEvaluate(*flags)); });
}

}  // namespace muster::cli
