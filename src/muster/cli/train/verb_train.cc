#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"

#include "CLI/CLI.hpp"
#include "muster/cli/common/help.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/common/wrong_use.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/job_flags.h"
#include "muster/cli/jobs/run_here.h"
#include "muster/cli/train/cluster_train.h"
#include "muster/cli/train/follow.h"
#include "muster/cli/train/held_back_flag.h"
#include "muster/cli/train/kafka_ranges.h"
#include "muster/cli/train/model_flags.h"
#include "muster/cli/train/train_flags.h"
#include "muster/cli/train/train_run.h"
#include "muster/cli/train/verbs.h"
#include "muster/files/file_systems.h"
#include "muster/model/spec/data_check.h"
#include "muster/train/cluster_role.h"

namespace muster::cli {
namespace {

void AddStrategyFlag(CLI::App& verb, std::optional<train::StrategyKind>* strategy) {
  std::map<std::string, train::StrategyKind> kinds;
  for (const auto kind : train::kAllStrategies) kinds[std::string(StrategyName(kind))] = kind;
  std::vector<std::string> names;
  for (const auto& [name, kind] : kinds) names.push_back(name);
  verb.add_option_function<std::string>(
          "--strategy", [=](const std::string& name) { *strategy = kinds.at(name); },
          "How replicas train together: allreduce, ps-sync or ps-async (default: ps-async with "
          "parameter servers, else allreduce)")
      ->check(CLI::IsMember(names));
}

void AddFlags(CLI::App* verb, const std::shared_ptr<TrainFlags>& flags) {
  verb->add_option("spec", flags->spec,
                   "Model file (docs/spec.md), or the folder of an exported Keras model "
                   "(docs/keras.md)")
      ->required()
      ->check([](const std::string& path) {
        return model::IsNamedAsData(path) ? model::DescribeDataAsModel(path) : "";
      })
      ->type_name("SPEC");
  verb->add_option("--set", flags->settings,
                   "Change a value of the model file: --set train.batch_size=64 --set "
                   "'model.dnn.hidden_units=[64, 32]'; once for each value")
      ->allow_extra_args(false)
      ->type_name("PATH=VALUE");
  AddDataFlags(*verb, "--train",
               "CSV, TFRecord or JSON lines: files, globs, or - for batches of a program",
               &flags->data, ", of --train and of each evaluation of --eval");
  AddFormatFlags(*verb, &flags->data.format);
  AddKafkaFlags(*verb, &flags->data.kafka);
  verb->add_option("model_dir,--model-dir", flags->run.model_dir,
                   "Folder of checkpoints and events")
      ->required()
      ->check(CheckNotEmpty)
      ->type_name("DIR");
  verb->add_option("--epochs", flags->epochs, "Passes over the data (default: the spec's)")
      ->check(CLI::PositiveNumber);
  auto* max_steps = verb->add_option("--max-steps", flags->max_steps,
                                     "Stop at this global step; without --epochs the data repeats")
                        ->check(CLI::PositiveNumber);
  verb->add_option("--steps", flags->steps,
                   "Take this many more steps (one process); otherwise like --max-steps")
      ->check(CLI::PositiveNumber)
      ->excludes(max_steps);
  verb->add_option("--seed", flags->seed, "Of weights, shuffle and dropout (default: the spec's)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--class-weight", flags->class_weights,
                   "Multiply the loss of the rows of each class, as class_weight of Keras's fit")
      ->type_name("CLASS=WEIGHT,...");
  AddThreadsFlag(*verb, &flags->run);
  verb->add_option("--replicas-per-task", flags->replicas,
                   "Replicas in one process, each with a thread and a batch of its own")
      ->check(CLI::Range(1, 1024))
      ->excludes("--threads")
      ->type_name("N");
  AddTensorFlowFlag(*verb, &flags->run);
  AddPrecisionFlag(*verb, "bf16: large layers in bfloat16, on AMX (default: the spec's)",
                   [flags](engine::Precision given) { flags->precision = given; });
  verb->add_flag("--no-shuffle", flags->no_shuffle, "Rows in the order of the files");
  verb->add_flag("--drop-remainder", flags->drop_remainder,
                 "Leave out an epoch's last batch when it is smaller");
  verb->add_flag("--fresh-data", flags->fresh_data,
                 "Begin at the start of the data instead of at the checkpoint's position");
  AddCacheFlags(*verb, &flags->cache,
                "Keep the floats and ids of the rows in a folder, from which later epochs and "
                "trainings read them; auto: ~/.cache/muster/features, for data from 64 MiB on",
                "DIR|auto|off");
  AddStrategyFlag(*verb, &flags->strategy);
  verb->add_option(
          "--staleness", flags->staleness,
          "Of ps-async: no replica begins a batch that is more than N ahead of the slowest "
          "live one; 0: in lock step (default: no bound)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--replicas-to-aggregate", flags->aggregate,
                   "Of ps-sync: a step is made of the first N replicas' gradients, and those that "
                   "arrive later are dropped (default: of all)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  verb->add_option("--rendezvous-timeout", flags->rendezvous_seconds,
                   "Seconds that tasks of a job wait for an absent one, 0: unlimited "
                   "(default: MUSTER_RENDEZVOUS_TIMEOUT, else 300; for it to be started, 60)")
      ->check(CLI::Range(0.0, 1e9));
  verb->add_option(
          "--stall-timeout", flags->stall_seconds,
          "Seconds in which neither data nor keep-alives arrived from another machine, after "
          "which the network to it counts as broken (default: 30)")
      ->check(CLI::Range(train::kMinStallSeconds, train::kMaxStallSeconds))
      ->type_name("SECONDS");
  CLI::Option* const save_steps = verb->add_option(
      "--save-steps", flags->run.save_checkpoints_steps, "Checkpoint every N steps");
  save_steps->check(CLI::PositiveNumber);
  verb->add_option("--save-secs", flags->run.save_checkpoints_secs,
                   "Checkpoint every N seconds (default: 600, without --save-steps)")
      ->check(CLI::NonNegativeNumber)
      ->excludes(save_steps);
  verb->add_option("--keep-checkpoints", flags->run.keep_checkpoint_max,
                   "Checkpoints to keep; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--keep-checkpoint-hours", flags->run.keep_checkpoint_every_n_hours,
                   "Keep one checkpoint of every N hours permanently")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_flag("--stop-on-nan{false}", flags->run.nan_loss_is_failure,
                 "A loss that is not finite ends the training without a failure");
  verb->add_option(
          "--warm-start", flags->warm_start,
          "Begin a new model with the weights of a checkpoint, model folder or SavedModel, "
          "of all variables or those that begin with a match of a regular expression")
      ->type_name("PATH[:PATTERN]");
  verb->add_option("--continue-from", flags->continue_from,
                   "Begin a new model folder with the whole state of another one: weights, "
                   "optimizer slots, step and place in the data; values such as learning rates may "
                   "differ")
      ->type_name("CHECKPOINT");
  AddLoggingFlags(*verb, &flags->logging, &flags->run);
  AddEvaluationFlags(*verb, &flags->eval);
  AddHookCallFlags(*verb, &flags->calls);
  AddOutputFlags(*verb, &flags->output);
  Group(*verb, kData, {"--train", "--batch-size"});
  Group(*verb, kMoreData,
        {"--max-bad-records", "--no-shuffle", "--drop-remainder", "--fresh-data", "--cache",
         "--cache-limit"});
  Group(*verb, kTraining,
        {"--set", "--epochs", "--max-steps", "--steps", "--seed", "--threads", "--warm-start",
         "--class-weight"});
  Group(*verb, kMoreTraining,
        {"--continue-from", "--replicas-per-task", "--tensorflow", "--precision", "--stop-on-nan"});
  Group(*verb, kEvaluation,
        {"--eval", "--eval-every-epoch", "--eval-throttle-secs", "--exporter", "--early-stop",
         "--evaluator"});
  Group(*verb, kMoreEvaluation,
        {"--eval-steps", "--eval-name", "--eval-start-delay-secs", "--exports-to-keep",
         "--eval-elsewhere"});
  Group(*verb, kMoreProcesses,
        {"--strategy", "--staleness", "--replicas-to-aggregate", "--rendezvous-timeout",
         "--stall-timeout"});
  Group(*verb, kCheckpoints,
        {"--save-steps", "--save-secs", "--keep-checkpoints", "--keep-checkpoint-hours"});
  Group(*verb, kEvents,
        {"--summary-steps", "--histogram-steps", "--rate-steps", "--log-steps", "--log-secs",
         "--log-at-end", "--profile-steps"});
  Group(*verb, kResults, {"--json", "--quiet"});
}

// What evaluations have in common with the training.
absl::Status ShareDataFlags(TrainFlags* flags) {
  if (flags->output.quiet) flags->data.note = flags->eval.data.note = nullptr;
  flags->eval.data.kafka = flags->data.kafka;
  return HoldBack(flags);
}

}  // namespace

absl::Status ParseWorkers(const std::string& text, TrainFlags* flags) {
  constexpr int kMost = 1000;
  const size_t colon = text.find(':');
  const bool range = colon != std::string::npos;
  int fewest = 1;
  const bool sound = (!range || absl::SimpleAtoi(text.substr(0, colon), &fewest)) &&
                     absl::SimpleAtoi(text.substr(range ? colon + 1 : 0), &flags->workers) &&
                     fewest >= 1 && fewest <= flags->workers && flags->workers <= kMost;
  if (!sound) {
    return absl::InvalidArgumentError(StrCat("--workers: '", text,
                                             "' is neither a number from 1 to ", kMost,
                                             " nor a range such as 2:4"));
  }
  flags->min_workers = range ? fewest : 0;
  return absl::OkStatus();
}

absl::Status ParseTrainFlags(const std::vector<std::string>& words, TrainFlags* flags) {
  const auto parsed = std::make_shared<TrainFlags>();
  CLI::App verb("", "muster train");
  AddFlags(&verb, parsed);
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 wants them
  try {
    verb.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    const std::string what = DescribeWrongUse(verb, error);
    return absl::InvalidArgumentError(what.substr(0, what.find('\n')));  // the rest names --help
  }
  MUSTER_RETURN_IF_ERROR(ShareDataFlags(parsed.get()));
  MUSTER_RETURN_IF_ERROR(CheckTogether(*parsed));
  *flags = std::move(*parsed);
  return absl::OkStatus();
}

void AddTrain(CLI::App& app, const std::vector<std::string>& arguments) {
  const auto flags = std::make_shared<TrainFlags>();
  CLI::App* verb = app.add_subcommand("train", "Train a model file on CSV, TFRecord or JSON lines");
  verb->footer(
      "The same command continues an interrupted run exactly from its last checkpoint.\n"
      "Examples:\n"
      "  muster train examples/titanic/titanic.yaml model --train 'data/train/part-*' \\\n"
      "      --eval 'data/test/part-*' --eval-throttle-secs 60 --exporter best\n"
      "  muster train examples/titanic/titanic.yaml m2 --train 'data/train/part-*' \\\n"
      "      --workers 2 --evaluator --eval 'data/test/part-*' --exporter best\n"
      "  muster train examples/titanic/titanic.yaml m3 --train 'data/train/part-*' \\\n"
      "      --workers 2 --ps 1 --strategy ps-async\n"
      "  muster train titanic.yaml /data/m4 --train '/data/train/part-*' --workers 4 \\\n"
      "      --on kubernetes --image example/muster:1 --volume data:/data\n"
      "  muster train titanic.yaml hdfs:///m5 --train 'hdfs:///data/train/*' \\\n"
      "      --workers 4 --on yarn --queue research");
  AddFlags(verb, flags);
  verb->add_option_function<std::string>(
          "--workers",
          [flags](const std::string& text) { RefuseUnlessOk(ParseWorkers(text, flags.get())); },
          "Replicas that train together, each with its part of the data and batches of the batch "
          "size: a job of this machine (docs/distributed.md). MIN:MAX: it continues while MIN are "
          "present")
      ->type_name("N or MIN:MAX");
  verb->add_option("--ps", flags->ps,
                   "Parameter servers, which have the weights; the replicas train by them")
      ->check(CLI::Range(1, 1000));
  auto* restarts = verb->add_option("--restarts", flags->restarts,
                                    "Most restarts of each task of the job that dies")
                       ->check(CLI::NonNegativeNumber)
                       ->capture_default_str();
  auto* job = verb->add_option("--job,--name", flags->job, "The job's name, for muster status")
                  ->check(NewJobNameError);
  AddHostFlags(*verb, &flags->hosts, &flags->ssh);
  AddFollowFlags(*verb, flags.get());
  Group(*verb, kMoreData, {"--follow", "--follow-secs", "--follow-group"});
  Group(*verb, kProcesses, {"--workers", "--ps", "--hosts"});
  Group(*verb, kMoreProcesses, {"--restarts", "--job", "--ssh"});
  auto* hosts = verb->get_option("--hosts");
  const auto cluster = std::make_shared<ClusterTrainFlags>();
  AddClusterTrainFlags(*verb, cluster.get());
  hosts->excludes("--on");
  verb->callback([=] {
    RefuseUnlessOk(ShareDataFlags(flags.get()));
    const bool is_elsewhere = cluster->where.is_elsewhere();
    const bool is_job = flags->workers > 0 || flags->eval.evaluator || is_elsewhere;
    if (flags->ps > 0 && flags->workers == 0) {
      throw CLI::RequiresError("--ps", "--workers; --workers 1 is one replica beside the servers");
    }
    for (const CLI::Option* const of_job : {restarts, job, hosts}) {
      if (of_job->count() > 0 && !is_job) {
        throw CLI::RequiresError(of_job->get_name(), "--workers, --evaluator or --on");
      }
    }
    const bool several =
        flags->workers > 1 || flags->ps > 0 || flags->eval.evaluator || !flags->hosts.empty();
    RefuseUnlessOk(CheckTogether(*flags));
    RefuseUnlessOk(CheckFollow(*flags, is_elsewhere));
    std::vector<std::string> words = arguments;
    FailUnlessOk(FixTopics(*files::OpenFileSystems(), flags.get(), &words));
    if (is_elsewhere) return FailUnlessOk(TrainOnCluster(*flags, *cluster, words));
    if (!several) return FailUnlessOk(RunTrain(*flags));
    FailUnlessOk(RunReplicas(*flags, WithoutFlags(words, {"--workers", "--ps", "--restarts",
                                                          "--job", "--name", "--hosts", "--ssh"})));
  });
}

void AddWorker(CLI::App& app) {
  const auto flags = std::make_shared<TrainFlags>();
  CLI::App* verb =
      app.add_subcommand("worker", "Run one replica of a training, which TF_CONFIG names");
  verb->footer(
      "'muster train --workers N' starts it N times; so can any launcher that sets TF_CONFIG.\n"
      "All replicas get the same flags and reach the same data; the chief writes --model-dir.\n"
      "Example, for the first of two terminals:\n"
      "  openssl rand -hex 32 > key; chmod 600 key\n"
      "  export MUSTER_KEY_FILE=key\n"
      "  export TF_CONFIG='{\"cluster\": {\"chief\": [\"127.0.0.1:7001\"],\n"
      "      \"worker\": [\"127.0.0.1:7002\"]}, \"task\": {\"type\": \"chief\", \"index\": 0}}'\n"
      "  muster worker examples/titanic/titanic.yaml m2 --train 'data/train/part-*'");
  AddFlags(verb, flags);
  AddProtectionFlags(*verb, &flags->protection);
  verb->add_option(
          "--min-workers", flags->min_workers,
          "Begin and continue to train with this many replicas if the others of TF_CONFIG are "
          "absent (default: all are needed)")
      ->check(CLI::Range(1, 1000));
  AddFollowFlags(*verb, flags.get());
  Group(*verb, kMoreData, {"--follow", "--follow-secs", "--follow-group"});
  Group(*verb, kProcesses, {"--certs", "--plain-text", "--min-workers"});
  verb->callback([flags] {
    RefuseUnlessOk(ShareDataFlags(flags.get()));
    const char* const task = std::getenv("TF_CONFIG");
    if (task == nullptr || *task == '\0') {
      throw CLI::ValidationError("worker",
                                 "TF_CONFIG is not set, which says what task this is and where the "
                                 "others are; 'muster train' trains alone, and 'muster train "
                                 "--workers N' starts all tasks on this machine");
    }
    RefuseUnlessOk(CheckFollow(*flags, /*is_elsewhere=*/false));
    RefuseUnlessOk(CheckTopicsAreFixed(*flags));
    FailUnlessOk(RunTrain(*flags));
  });
}

}  // namespace muster::cli
