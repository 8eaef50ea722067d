#include "muster/cli/train_run.h"

#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "muster/base/crc32c.h"
#include "muster/cli/interrupt.h"
#include "muster/cli/job_client.h"
#include "muster/cli/job_flags.h"
#include "muster/cli/run_here.h"
#include "muster/io/local_file_system.h"
#include "muster/train/cluster_role.h"
#include "muster/train/grown_tables.h"
#include "muster/train/parts.h"
#include "muster/train/served_cluster.h"
#include "muster/train/train_and_evaluate.h"

namespace muster::cli {
namespace {

constexpr uint64_t kMaxSpecBytes = uint64_t{16} << 20;

// What all replicas must have the same: they would else train different models, or on other data.
absl::StatusOr<std::string> AgreementOf(const TrainFlags& flags, const model::ModelSpec& model,
                                        const train::TrainSpec& spec, io::FileSystem& files) {
  uint32_t checksum = 0;
  if (model.exported) {
    checksum = model.exported->checksum;
  } else {
    MUSTER_ASSIGN_OR_RETURN(const std::string text, io::ReadFile(files, flags.spec, kMaxSpecBytes));
    checksum = Crc32c(text);
  }
  std::string agreement =
      absl::StrFormat("model file %08x, data %s, batches of %d, seed %d, muster %s", checksum,
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

}  // namespace

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
  if (flags.run.task_type != "ps") MUSTER_RETURN_IF_ERROR(ResolveTensorFlow(model, &flags.run));
  CheckProtected(flags.protection, flags.run, flags.eval);
  train::TrainSpec spec = TrainSpecOf(flags, model.train);
  MUSTER_ASSIGN_OR_RETURN(const std::string agreement, AgreementOf(flags, model, spec, *files));
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
  train::RunConfig resolved = flags.run;
  MUSTER_RETURN_IF_ERROR(ResolveTensorFlow(model, &resolved));
  MUSTER_ASSIGN_OR_RETURN(const std::string program, OwnProgram());
  JobFlags job;
  job.command = {program, "worker"};
  job.command.insert(job.command.end(), arguments.begin(), arguments.end());
  if (flags.min_workers > 0) job.command.push_back(StrCat("--min-workers=", flags.min_workers));
  if (flags.run.tensorflow.empty() && !resolved.tensorflow.empty()) {
    job.command.push_back(StrCat("--tensorflow=", resolved.tensorflow));
  }
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

}  // namespace muster::cli
