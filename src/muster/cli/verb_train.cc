#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <thread>

#include "absl/strings/str_format.h"

#include "CLI/CLI.hpp"
#include "muster/cli/cli.h"
#include "muster/cli/interrupt.h"
#include "muster/cli/model_flags.h"
#include "muster/io/local_file_system.h"
#include "muster/train/estimator.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

struct TrainFlags {
  std::string spec;
  DataFlags data;
  DataFlags eval;
  train::RunConfig run;
  int64_t epochs = 0;
  int64_t steps = 0;
  int64_t seed = -1;
  std::optional<engine::Precision> precision;
  bool no_shuffle = false;
  bool drop_remainder = false;
  bool fresh_data = false;
  OutputFlags output;
};

train::TrainSpec TrainSpecOf(const TrainFlags& flags, const model::TrainDefaults& defaults) {
  train::TrainSpec spec;
  spec.input = SequentialInput(flags.data, defaults.batch_size);
  spec.input.reader.shuffle = defaults.shuffle && !flags.no_shuffle;
  spec.input.reader.epochs = flags.epochs > 0 ? flags.epochs : defaults.epochs;
  // Steps alone mean: as many epochs as it takes.
  if (flags.steps > 0 && flags.epochs == 0) spec.input.reader.epochs = 0;
  spec.input.reader.seed = flags.run.seed;
  spec.input.reader.drop_remainder = flags.drop_remainder;
  if (flags.steps > 0) spec.max_steps = flags.steps;
  spec.fresh_data = flags.fresh_data;
  return spec;
}

void PrintResult(const TrainFlags& flags, const train::TrainResult& result) {
  const double rate = result.seconds > 0 ? result.examples / result.seconds : 0;
  if (flags.output.json) {
    nlohmann::ordered_json object = {{"event", "trained"},
                                     {"first_step", result.first_step},
                                     {"step", result.step},
                                     {"examples", result.examples},
                                     {"seconds", result.seconds},
                                     {"examples_per_second", rate},
                                     {"loss", result.loss},
                                     {"bad_records", result.bad_records},
                                     {"interrupted", result.interrupted},
                                     {"checkpoint", result.checkpoint}};
    std::printf("%s\n", object.dump().c_str());
    return;
  }
  std::printf("%s at step %lld", result.interrupted ? "Stopped" : "Trained",
              static_cast<long long>(result.step));
  if (result.first_step > 0) {
    std::printf(" (resumed at %lld)", static_cast<long long>(result.first_step));
  }
  std::printf(", %s examples in %s, %s examples/s, loss %.4f\n",
              train::FormatCount(static_cast<double>(result.examples)).c_str(),
              train::FormatDuration(result.seconds).c_str(), train::FormatCount(rate).c_str(),
              result.loss);
  if (result.bad_records > 0) {
    std::printf("  left out   %llu bad records\n",
                static_cast<unsigned long long>(result.bad_records));
  }
  std::printf("  checkpoint %s\n", result.checkpoint.c_str());
}

absl::Status Evaluate(const TrainFlags& flags, train::Estimator& estimator, const Clock& clock) {
  train::Progress progress(StyleOf(flags.output), STDERR_FILENO, clock);
  train::EvalSpec spec;
  spec.steps.reset();
  spec.input = SequentialInput(flags.eval, kInferenceBatchSize);
  MUSTER_ASSIGN_OR_RETURN(const train::EvalResult result, estimator.Evaluate(spec, progress));
  if (!flags.output.json) {
    std::printf("Evaluated %llu examples\n", static_cast<unsigned long long>(result.examples));
  }
  PrintMetrics(flags.output, "evaluated", result.metrics);
  return absl::OkStatus();
}

absl::Status RunTrain(TrainFlags& flags) {
  const auto files = io::NewLocalFileSystem();
  const SystemClock clock;
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec, model::LoadModelSpec(*files, flags.spec));
  flags.run.seed = flags.seed >= 0 ? static_cast<uint64_t>(flags.seed) : spec.train.seed;
  flags.run.precision = flags.precision.value_or(spec.train.precision);
  MUSTER_ASSIGN_OR_RETURN(const auto estimator,
                          train::Estimator::Create(*files, clock, spec, flags.run));
  const InterruptScope interrupt;
  train::TrainResult result;
  {
    train::Progress progress(StyleOf(flags.output), STDERR_FILENO, clock);
    MUSTER_ASSIGN_OR_RETURN(result, estimator->Train(TrainSpecOf(flags, spec.train), progress,
                                                     InterruptScope::requested()));
  }
  PrintResult(flags, result);
  if (result.interrupted) {
    return absl::CancelledError(
        StrCat("stopped by a signal at step ", result.step, "; the same command continues"));
  }
  if (flags.eval.patterns.empty()) return absl::OkStatus();
  return Evaluate(flags, *estimator, clock);
}

}  // namespace

void AddTrain(CLI::App& app) {
  const auto flags = std::make_shared<TrainFlags>();
  CLI::App* verb = app.add_subcommand("train", "Train a model file on CSV or TFRecord data");
  verb->footer(
      "The same command continues an interrupted run exactly where its last checkpoint stands.\n"
      "Example:\n"
      "  muster train examples/titanic/titanic.yaml --train 'data/train/part-*' \\\n"
      "      --eval 'data/test/part-*' --model-dir model");
  verb->add_option("spec", flags->spec, "Model file (docs/spec.md)")->required()->type_name("SPEC");
  AddDataFlags(*verb, "--train", "Training data: files, globs, or - for batches", &flags->data);
  verb->add_option("--eval", flags->eval.patterns, "Evaluate on these when training is done")
      ->type_name("GLOB");
  verb->add_option("--model-dir", flags->run.model_dir, "Folder of checkpoints and events")
      ->required()
      ->type_name("DIR");
  verb->add_option("--epochs", flags->epochs, "Passes over the data (default: the spec's)")
      ->check(CLI::PositiveNumber);
  verb->add_option("--steps", flags->steps,
                   "Stop at this global step; without --epochs the data repeats")
      ->check(CLI::PositiveNumber);
  verb->add_option("--seed", flags->seed, "Of weights, shuffle and dropout (default: the spec's)")
      ->check(CLI::NonNegativeNumber);
  AddThreadsFlag(*verb, &flags->run);
  AddPrecisionFlag(*verb, "bf16: large layers in bfloat16, on AMX (default: the spec's)",
                   [flags](engine::Precision given) { flags->precision = given; });
  verb->add_flag("--no-shuffle", flags->no_shuffle, "Rows in the order of the files");
  verb->add_flag("--drop-remainder", flags->drop_remainder,
                 "Leave out an epoch's last batch when it is smaller");
  verb->add_flag("--fresh-data", flags->fresh_data,
                 "Begin the data anew instead of at the checkpoint's position");
  verb->add_option("--save-steps", flags->run.save_checkpoints_steps, "Checkpoint every N steps")
      ->check(CLI::PositiveNumber);
  verb->add_option("--save-secs", flags->run.save_checkpoints_secs,
                   "Checkpoint every N seconds (default: 600, without --save-steps)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--keep-checkpoints", flags->run.keep_checkpoint_max, "0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--keep-checkpoint-hours", flags->run.keep_checkpoint_every_n_hours,
                   "Keep one checkpoint of every N hours for good")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("--summary-steps", flags->run.save_summary_steps,
                   "TensorBoard events every N steps")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("--histogram-steps", flags->run.histogram_steps,
                   "Histograms of weights and activations among them every N steps; 0: none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  AddOutputFlags(*verb, &flags->output);
  verb->callback([flags] { FailUnlessOk(RunTrain(*flags)); });
}

}  // namespace muster::cli
