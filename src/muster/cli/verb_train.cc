#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "CLI/CLI.hpp"
#include "muster/base/crc32c.h"
#include "muster/cli/cli.h"
#include "muster/cli/interrupt.h"
#include "muster/cli/job_client.h"
#include "muster/cli/job_flags.h"
#include "muster/cli/model_flags.h"
#include "muster/cli/run_here.h"
#include "muster/cli/train_flags.h"
#include "muster/io/local_file_system.h"
#include "muster/train/cluster_role.h"
#include "muster/train/grown_tables.h"
#include "muster/train/parts.h"
#include "muster/train/served_cluster.h"
#include "muster/train/train_and_evaluate.h"

namespace muster::cli {
namespace {

constexpr uint64_t kMaxSpecBytes = uint64_t{16} << 20;

struct TrainFlags {
  std::string spec;
  DataFlags data;
  EvaluationFlags eval;
  train::RunConfig run;
  int64_t epochs = 0;
  int64_t steps = 0;
  int64_t max_steps = 0;
  LoggingFlags logging;
  std::string warm_start;
  int64_t seed = -1;
  std::optional<engine::Precision> precision;
  bool no_shuffle = false;
  bool drop_remainder = false;
  bool fresh_data = false;
  HookCallFlags calls;
  OutputFlags output;
  std::string strategy;
  int64_t staleness = -1;
  int aggregate = 0;
  // Of a job of several replicas.
  int workers = 0, ps = 0;
  ProtectionFlags protection;
  int min_workers = 0;  // so many go on without the others; 0: only all
  int replicas = 0;     // in this process
  int restarts = 3;
  std::string job;
};

// What all replicas must have the same: they would else train different models, or on other data.
absl::StatusOr<std::string> AgreementOf(const TrainFlags& flags, const train::TrainSpec& spec,
                                        io::FileSystem& files) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, io::ReadFile(files, flags.spec, kMaxSpecBytes));
  std::string agreement =
      absl::StrFormat("model file %08x, data %s, batches of %d, seed %d, muster %s", Crc32c(text),
                      absl::StrJoin(flags.data.patterns, " "), spec.input.reader.batch_size,
                      spec.input.reader.seed, MUSTER_VERSION);
  if (flags.min_workers > 0) agreement += StrCat(", at least ", flags.min_workers, " replicas");
  return agreement;
}

// What this replica reads: a shard, or, where replicas may leave and come, parts.
absl::Status DealData(const TrainFlags& flags, io::FileSystem& files, train::TrainSpec* spec) {
  data::Shard& shard = spec->input.source.shard;
  if (flags.min_workers == 0 || spec->replicas == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(shard, train::ShardOf(flags.run, flags.data.patterns, files));
    return absl::OkStatus();
  }
  const int most = flags.run.num_worker_replicas;
  spec->parts = train::PartsFor(flags.min_workers, most);
  MUSTER_ASSIGN_OR_RETURN(shard, train::FirstPart(spec->parts, flags.data.patterns, files));
  // As much memory as without parts, when all are there.
  int& open_chunks = spec->input.reader.open_chunks;
  open_chunks = std::max(1, open_chunks * most / spec->parts);
  return absl::OkStatus();
}

train::TrainSpec TrainSpecOf(const TrainFlags& flags, const model::TrainDefaults& defaults) {
  train::TrainSpec spec;
  spec.input = SequentialInput(flags.data, defaults.batch_size);
  spec.input.reader.shuffle = defaults.shuffle && !flags.no_shuffle;
  spec.input.reader.epochs = flags.epochs > 0 ? flags.epochs : defaults.epochs;
  // Steps alone mean: as many epochs as it takes.
  const bool by_steps = flags.steps > 0 || flags.max_steps > 0;
  if (by_steps && flags.epochs == 0) spec.input.reader.epochs = 0;
  spec.input.reader.seed = flags.run.seed;
  spec.input.reader.drop_remainder = flags.drop_remainder;
  if (flags.steps > 0) spec.steps = flags.steps;
  if (flags.max_steps > 0) spec.max_steps = flags.max_steps;
  spec.fresh_data = flags.fresh_data;
  spec.input.reader.batch_size *= std::max(flags.replicas, 1);
  return spec;
}

void AddCalls(const std::shared_ptr<train::HookCalls>& calls, train::TrainSpec* spec) {
  if (calls == nullptr) return;
  AddCalledHook(calls, train::ModeKeys::kTrain, &spec->hooks);
  if (auto listener = train::NewCalledListener(calls)) {
    spec->saving_listeners.push_back(std::move(listener));
  }
}

// One of the replicas speaks for all; an evaluator for itself.
bool Speaks(const train::TrainSpec& spec) {
  return spec.replicas == nullptr || spec.replicas->is_chief();
}

absl::StatusOr<train::TrainAndEvaluateResult> Run(const TrainFlags& flags,
                                                  const train::TrainSpec& spec,
                                                  train::TrainingWatch* training,
                                                  train::Estimator& estimator,
                                                  const std::shared_ptr<train::HookCalls>& calls,
                                                  const Clock& clock) {
  const bool speaks = Speaks(spec);
  train::Progress progress(speaks ? StyleOf(flags.output) : train::ProgressStyle::kNone,
                           STDERR_FILENO, clock);
  if (!flags.eval.data.patterns.empty() && speaks) {
    std::optional<int64_t> reported;
    MUSTER_ASSIGN_OR_RETURN(train::EvalSpec eval, EvalSpecOf(flags.eval));
    AddCalledHook(calls, train::ModeKeys::kEval, &eval.hooks);
    eval.training = training;
    return train::TrainAndEvaluate(
        estimator, spec, eval, progress, InterruptScope::requested(),
        [&](const train::EvalResult& result, const std::vector<std::string>& exports) {
          ReportEvaluation(flags.output, progress, result, exports, reported == result.step);
          reported = result.step;
        });
  }
  MUSTER_RETURN_IF_ERROR(train::EvaluatesItself(estimator.config(), spec.replicas).status());
  train::TrainAndEvaluateResult result;
  MUSTER_ASSIGN_OR_RETURN(result.training,
                          estimator.Train(spec, progress, InterruptScope::requested()));
  return result;
}

absl::Status RunTrain(TrainFlags& flags) {
  const auto files = io::NewLocalFileSystem();
  const SystemClock clock;
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec model, model::LoadModelSpec(*files, flags.spec));
  flags.run.seed = flags.seed >= 0 ? static_cast<uint64_t>(flags.seed) : model.train.seed;
  if (flags.replicas > 0) {
    flags.run.threads = flags.replicas;
    flags.run.threads_are_replicas = true;
  }
  flags.run.precision = flags.precision.value_or(model.train.precision);
  MUSTER_RETURN_IF_ERROR(train::ReadTaskEnvironment(clock, &flags.run));
  CheckProtected(flags.protection, flags.run, flags.eval);
  train::TrainSpec spec = TrainSpecOf(flags, model.train);
  MUSTER_ASSIGN_OR_RETURN(const std::string agreement, AgreementOf(flags, spec, *files));
  const InterruptScope interrupt;
  const train::ClusterRoleOptions options = {.agreement = agreement,
                                             .evaluator = flags.eval.evaluator,
                                             .strategy = flags.strategy,
                                             .staleness = flags.staleness,
                                             .certificates = flags.protection.certificates,
                                             .plain_text = flags.protection.plain_text,
                                             .aggregate = flags.aggregate,
                                             .min_replicas = flags.min_workers,
                                             .stop = &InterruptScope::requested(),
                                             .note = SayOfJob};
  if (flags.run.task_type == "ps") return train::RunParameterServer(flags.run, options, model);
  MUSTER_ASSIGN_OR_RETURN(const train::ClusterRole role,
                          train::JoinFromEnvironment(flags.run, options, clock));
  spec.replicas = role.replicas.get();
  MUSTER_RETURN_IF_ERROR(DealData(flags, *files, &spec));
  if (Speaks(spec)) {
    MUSTER_ASSIGN_OR_RETURN(spec.hooks, EarlyStopsOf(flags.eval, flags.run.model_dir));
    AddLoggingHooks(flags.logging, &spec.hooks);
  }
  MUSTER_ASSIGN_OR_RETURN(const auto calls, HookCallsOf(flags.calls));
  AddCalls(calls, &spec);
  MUSTER_ASSIGN_OR_RETURN(const auto estimator,
                          train::Estimator::Create(*files, clock, model, flags.run));
  if (!flags.warm_start.empty()) {
    MUSTER_ASSIGN_OR_RETURN(train::WarmStart start, train::ParseWarmStart(flags.warm_start));
    MUSTER_ASSIGN_OR_RETURN(start.vocabularies, train::ChangedVocabularies(*files, start, model));
    estimator->set_warm_start(std::move(start));
  }
  MUSTER_ASSIGN_OR_RETURN(const train::TrainAndEvaluateResult result,
                          Run(flags, spec, role.training.get(), *estimator, calls, clock));
  const bool trains = role.training == nullptr;
  if (trains && Speaks(spec)) PrintTrained(flags.output, result.training);
  if (result.training.interrupted) {
    return absl::CancelledError(StrCat("stopped by a signal at step ", result.training.step,
                                       "; the same command continues"));
  }
  if (result.evaluation) PrintEvaluated(flags.output, *result.evaluation, result.exports);
  return absl::OkStatus();
}

void AddFlags(CLI::App* verb, const std::shared_ptr<TrainFlags>& flags) {
  verb->add_option("spec", flags->spec, "Model file (docs/spec.md)")->required()->type_name("SPEC");
  AddDataFlags(*verb, "--train", "Training data: files, globs, or - for batches", &flags->data);
  verb->add_option("--model-dir", flags->run.model_dir, "Folder of checkpoints and events")
      ->required()
      ->type_name("DIR");
  verb->add_option("--epochs", flags->epochs, "Passes over the data (default: the spec's)")
      ->check(CLI::PositiveNumber);
  auto* max_steps = verb->add_option("--max-steps", flags->max_steps,
                                     "Stop at this global step; without --epochs the data repeats")
                        ->check(CLI::PositiveNumber);
  verb->add_option("--steps", flags->steps, "Take this many steps more; else as --max-steps")
      ->check(CLI::PositiveNumber)
      ->excludes(max_steps);
  verb->add_option("--seed", flags->seed, "Of weights, shuffle and dropout (default: the spec's)")
      ->check(CLI::NonNegativeNumber);
  AddThreadsFlag(*verb, &flags->run);
  verb->add_option("--replicas-per-task", flags->replicas,
                   "Replicas in one process, each with a thread and a batch of its own")
      ->check(CLI::Range(1, 1024))
      ->excludes("--threads")
      ->type_name("N");
  AddPrecisionFlag(*verb, "bf16: large layers in bfloat16, on AMX (default: the spec's)",
                   [flags](engine::Precision given) { flags->precision = given; });
  verb->add_flag("--no-shuffle", flags->no_shuffle, "Rows in the order of the files");
  verb->add_flag("--drop-remainder", flags->drop_remainder,
                 "Leave out an epoch's last batch when it is smaller");
  verb->add_flag("--fresh-data", flags->fresh_data,
                 "Begin the data anew instead of at the checkpoint's position");
  verb->add_option("--strategy", flags->strategy,
                   "How replicas train together: allreduce, ps-sync or ps-async (default: ps-async "
                   "with parameter servers, else allreduce)")
      ->check(CLI::IsMember({"allreduce", "ps-sync", "ps-async"}));
  verb->add_option(
          "--staleness", flags->staleness,
          "Of ps-async: no replica begins a batch that is more than N ahead of the slowest "
          "one that lives; 0: in lock step (default: no bound)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--replicas-to-aggregate", flags->aggregate,
                   "Of ps-sync: a step is made of the first N replicas' gradients, and those that "
                   "come later are dropped (default: of all)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
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
  verb->add_flag("--stop-on-nan{false}", flags->run.nan_loss_is_failure,
                 "A loss that is not finite ends the training without a failure");
  verb->add_option(
          "--warm-start", flags->warm_start,
          "Begin a new model with the weights of a checkpoint, model folder or SavedModel, "
          "of all variables or those that begin with a match of a regular expression")
      ->type_name("PATH[:PATTERN]");
  AddLoggingFlags(*verb, &flags->logging, &flags->run);
  AddEvaluationFlags(*verb, &flags->eval);
  AddHookCallFlags(*verb, &flags->calls);
  AddOutputFlags(*verb, &flags->output);
}

// The same command for each replica, as a job of this machine.
absl::Status RunReplicas(const TrainFlags& flags, const std::vector<std::string>& arguments) {
  MUSTER_RETURN_IF_ERROR(train::CheckStrategy(
      {.strategy = flags.strategy, .staleness = flags.staleness, .aggregate = flags.aggregate},
      flags.ps, std::max(flags.workers, 1)));
  if (flags.min_workers > 0 && flags.ps > 0) {
    return absl::InvalidArgumentError(
        "--workers MIN:MAX is for all-reduce: with parameter servers give one number, or leave "
        "--ps out");
  }
  if (flags.steps > 0) {
    return absl::InvalidArgumentError(
        "--steps counts from where one process begins: with "
        "--workers or --evaluator give --max-steps");
  }
  if (std::find(flags.data.patterns.begin(), flags.data.patterns.end(), "-") !=
      flags.data.patterns.end()) {
    return absl::InvalidArgumentError(
        "--train -: what comes through one pipe cannot be dealt to the tasks of a job (--workers, "
        "--evaluator); give files");
  }
  // What is wrong with the model file is said once, and before anything starts.
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec model,
                          model::LoadModelSpec(*io::NewLocalFileSystem(), flags.spec));
  if (flags.ps > 0) {
    MUSTER_RETURN_IF_ERROR(train::CheckServable(model));
  } else {
    MUSTER_RETURN_IF_ERROR(train::CheckReducible(model));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string program, OwnProgram());
  JobFlags job;
  job.command = {program, "worker"};
  job.command.insert(job.command.end(), arguments.begin(), arguments.end());
  if (flags.min_workers > 0) job.command.push_back(StrCat("--min-workers=", flags.min_workers));
  job.chief = true;
  job.workers = std::max(flags.workers, 1) - 1;
  job.evaluator = flags.eval.evaluator;
  job.ps = flags.ps;
  job.name = flags.job;
  job.typed = {"train", flags.spec};
  job.restarts = flags.restarts;
  job.restart_scope = "task";
  MUSTER_ASSIGN_OR_RETURN(const auto access, AccessOf(job));
  MUSTER_ASSIGN_OR_RETURN(JobRequest request, RequestOf(job));
  if (flags.min_workers > 0) {  // beside the chief
    request.spec.min_workers = flags.min_workers - 1;
    request.spec.max_workers = flags.workers - 1;
  }
  return StartJob(request, access, /*detach=*/false);
}

// "4", or "2:4" for two to four.
void TakeWorkers(const std::string& text, TrainFlags* flags) {
  constexpr int kMost = 1000;
  const size_t colon = text.find(':');
  const bool range = colon != std::string::npos;
  int fewest = 1;
  const bool sound = (!range || absl::SimpleAtoi(text.substr(0, colon), &fewest)) &&
                     absl::SimpleAtoi(text.substr(range ? colon + 1 : 0), &flags->workers) &&
                     fewest >= 1 && fewest <= flags->workers && flags->workers <= kMost;
  if (!sound) {
    throw CLI::ValidationError("--workers", StrCat("'", text, "' is neither a number from 1 to ",
                                                   kMost, " nor a range of such, 2:4"));
  }
  flags->min_workers = range ? fewest : 0;
}

}  // namespace

void AddTrain(CLI::App& app, const std::vector<std::string>& arguments) {
  const auto flags = std::make_shared<TrainFlags>();
  CLI::App* verb = app.add_subcommand("train", "Train a model file on CSV or TFRecord data");
  verb->footer(
      "The same command continues an interrupted run exactly where its last checkpoint stands.\n"
      "Examples:\n"
      "  muster train examples/titanic/titanic.yaml --train 'data/train/part-*' \\\n"
      "      --eval 'data/test/part-*' --eval-throttle-secs 60 --exporter best --model-dir model\n"
      "  muster train examples/titanic/titanic.yaml --train 'data/train/part-*' --model-dir m2 \\\n"
      "      --workers 2 --evaluator --eval 'data/test/part-*' --save-secs 30 --exporter best\n"
      "  muster train examples/titanic/titanic.yaml --train 'data/train/part-*' --model-dir m3 \\\n"
      "      --workers 2 --ps 1 --strategy ps-async");
  AddFlags(verb, flags);
  verb->add_option_function<std::string>(
          "--workers", [flags](const std::string& text) { TakeWorkers(text, flags.get()); },
          "Replicas that train together, each with its part of the data and batches of the batch "
          "size: a job of this machine (docs/distributed.md). MIN:MAX: it goes on while MIN are "
          "there")
      ->type_name("N or MIN:MAX");
  verb->add_option("--ps", flags->ps,
                   "Parameter servers, which have the weights; the replicas train by them")
      ->check(CLI::Range(1, 1000));
  auto* restarts =
      verb->add_option("--restarts", flags->restarts, "Of each task of the job that dies, at most")
          ->check(CLI::NonNegativeNumber)
          ->capture_default_str();
  auto* job = verb->add_option("--job", flags->job, "The job's name, for muster status");
  verb->callback([=] {
    const bool is_job = flags->workers > 0 || flags->eval.evaluator;
    if (flags->ps > 0 && flags->workers == 0) throw CLI::RequiresError("--ps", "--workers");
    for (const CLI::Option* const of_job : {restarts, job}) {
      if (of_job->count() > 0 && !is_job) {
        throw CLI::RequiresError(of_job->get_name(), "--workers or --evaluator");
      }
    }
    const bool several = flags->workers > 1 || flags->ps > 0 || flags->eval.evaluator;
    FailUnlessOk(several ? RunReplicas(*flags, WithoutFlags(arguments, {"--workers", "--ps",
                                                                        "--restarts", "--job"}))
                         : RunTrain(*flags));
  });
}

void AddWorker(CLI::App& app) {
  const auto flags = std::make_shared<TrainFlags>();
  CLI::App* verb = app.add_subcommand(
      "worker", "One replica of a training; TF_CONFIG and MUSTER_KEY_FILE say which");
  verb->footer(
      "What 'muster train --workers N' starts N times, and any launcher can that sets TF_CONFIG.\n"
      "All replicas get the same flags and reach the same data; the chief writes --model-dir.\n"
      "Example, of two terminals the first:\n"
      "  openssl rand -hex 32 > key; chmod 600 key\n"
      "  MUSTER_KEY_FILE=key TF_CONFIG='{\"cluster\": {\"chief\": [\"127.0.0.1:7001\"], "
      "\"worker\": [\"127.0.0.1:7002\"]}, \"task\": {\"type\": \"chief\", \"index\": 0}}' \\\n"
      "      muster worker examples/titanic/titanic.yaml --train 'data/train/part-*' --model-dir "
      "m2");
  AddFlags(verb, flags);
  AddProtectionFlags(*verb, &flags->protection);
  verb->add_option("--min-workers", flags->min_workers,
                   "Train, and go on, with so few replicas when the others of TF_CONFIG are not "
                   "there (default: only with all)")
      ->check(CLI::Range(1, 1000));
  verb->callback([flags] { FailUnlessOk(RunTrain(*flags)); });
}

}  // namespace muster::cli
