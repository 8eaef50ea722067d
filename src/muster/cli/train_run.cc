#include "muster/cli/train_run.h"

#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_join.h"

#include "muster/base/agreement.h"
#include "muster/cli/agreement.h"
#include "muster/cli/interrupt.h"
#include "muster/cli/job_client.h"
#include "muster/cli/job_flags.h"
#include "muster/cli/run_here.h"
#include "muster/data/batch_stream_reader.h"
#include "muster/files/file_systems.h"
#include "muster/train/cluster/finished_job.h"
#include "muster/train/cluster_role.h"
#include "muster/train/input/data_files.h"
#include "muster/train/input/parts.h"
#include "muster/train/parameter_server/ps_cluster.h"
#include "muster/train/train_and_evaluate.h"
#include "muster/train/weights/dynamic_tables.h"

namespace muster::cli {
namespace {

// A task of a job that has ended before waits so long for the others, at most.
constexpr double kSecondsForEnded = 10;

// What this replica reads: a shard, or, where replicas may leave and come, parts.
absl::Status DealData(const TrainFlags& flags, io::FileSystem& files, train::TrainSpec* spec) {
  if (data::IsBatchStream(spec->input.source)) return absl::OkStatus();  // it is dealt already
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

// The chief says it before it begins: it is no replica's fault.
absl::Status WarnOfUnevenShares(const TrainFlags& flags, const train::TrainSpec& spec,
                                io::FileSystem& files) {
  const bool by_files = spec.input.source.shard.by == data::ShardBy::kFile;
  if (!flags.run.is_chief || !by_files || data::IsBatchStream(spec.input.source)) {
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(const auto found, train::FindDataFiles(files, flags.data.patterns));
  const std::string uneven =
      train::DescribeUnevenShares(found, flags.run.num_worker_replicas, spec.parts);
  if (!uneven.empty()) SayOfJob(uneven);
  return absl::OkStatus();
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
    eval.input.reader.max_bad_records = flags.data.max_bad_records;
    const auto& exported = estimator.model().spec.exported;
    if (exported && exported->evaluates_by_batch) {
      eval.input.reader.batch_size = spec.input.reader.batch_size;
    }
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

// What the folder must say of a finished job for this task to have nothing left to do; none where
// the same command means new work each time.
std::optional<train::FinishedJob> EndOf(const TrainFlags& flags, const train::TrainSpec& spec,
                                        const std::string& agreement) {
  const bool is_task = !flags.run.cluster.empty() || flags.run.task_type == "evaluator";
  const bool is_new_each_time =
      spec.fresh_data || spec.steps.has_value() || data::IsBatchStream(spec.input.source);
  if (!is_task || is_new_each_time) return std::nullopt;
  const std::string rules =
      flags.run.is_chief ? absl::StrJoin(flags.eval.early_stops, ",") : kUnknownTerm;
  return train::FinishedJob{
      .job = flags.run.job,
      .agreement = StrCat(agreement, "; ", PrintAgreement({{"early stop", rules}}))};
}

// How a task ends that waits for others in vain. What the chief says of it reaches the others as
// FAILED_PRECONDITION.
bool IsAbsence(const absl::Status& status, bool is_chief) {
  return absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status) ||
         (!is_chief && absl::IsFailedPrecondition(status));
}

// This process alone, or as a replica or evaluator.
absl::Status RunRole(TrainFlags& flags, const model::ModelSpec& model, train::TrainSpec spec,
                     const train::ClusterRoleOptions& options, io::FileSystem& files,
                     const Clock& clock) {
  MUSTER_ASSIGN_OR_RETURN(const train::ClusterRole role,
                          train::JoinFromEnvironment(flags.run, options, clock));
  spec.replicas = role.replicas.get();
  MUSTER_RETURN_IF_ERROR(DealData(flags, files, &spec));
  MUSTER_RETURN_IF_ERROR(WarnOfUnevenShares(flags, spec, files));
  if (Speaks(spec)) {
    MUSTER_ASSIGN_OR_RETURN(spec.hooks, EarlyStopsOf(flags.eval, flags.run.model_dir));
    AddLoggingHooks(flags.logging, &spec.hooks);
  }
  MUSTER_ASSIGN_OR_RETURN(const auto calls, HookCallsOf(flags.calls));
  AddCalls(calls, &spec);
  MUSTER_ASSIGN_OR_RETURN(const auto estimator,
                          train::Estimator::Create(files, clock, model, flags.run));
  if (!flags.warm_start.empty()) {
    MUSTER_ASSIGN_OR_RETURN(train::WarmStart start, train::ParseWarmStart(flags.warm_start));
    MUSTER_ASSIGN_OR_RETURN(start.vocabularies, train::ChangedVocabularies(files, start, model));
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

// RunRole, or a parameter server's life, of a job whose end is left in the model folder and found
// there.
absl::Status RunRoleOnce(TrainFlags& flags, const model::ModelSpec& model,
                         const train::TrainSpec& spec, train::ClusterRoleOptions options,
                         io::FileSystem& files, const Clock& clock) {
  const std::string& model_dir = flags.run.model_dir;
  const auto end = EndOf(flags, spec, options.agreement);
  const bool has_ended = end && train::HasFinished(files, model_dir, *end);
  const auto say = [&](const std::string& why) {
    SayOfJob(StrCat("job '", flags.run.job, "' has ended before, and ", model_dir,
                    " has its last checkpoint: nothing is left to do", why));
    return absl::OkStatus();
  };
  if (has_ended && flags.run.task_type == "evaluator") return say("");
  if (has_ended) {
    // The others are gone, unless all were started again.
    const double given = options.rendezvous_seconds;
    options.rendezvous_seconds = given > 0 ? std::min(given, kSecondsForEnded) : kSecondsForEnded;
    options.evaluator = false;
    flags.run.cluster.erase("evaluator");
  }
  const absl::Status status = flags.run.task_type == "ps"
                                  ? train::RunParameterServer(flags.run, options, model)
                                  : RunRole(flags, model, spec, options, files, clock);
  if (has_ended && IsAbsence(status, flags.run.is_chief)) {
    return say(StrCat(" (", status.message(), ")"));
  }
  if (!status.ok() || !end || !flags.run.is_chief) return status;
  const absl::Status written = train::WriteFinishedJob(files, model_dir, *end);
  if (!written.ok()) SayOfJob(StrCat("warning: that the job has ended: ", written.message()));
  return absl::OkStatus();
}

}  // namespace

absl::Status RunTrain(TrainFlags& flags) {
  const auto files = files::OpenFileSystems();
  const SystemClock clock;
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec model, model::LoadModelSpec(*files, flags.spec));
  MUSTER_RETURN_IF_ERROR(CheckEvaluation(flags.eval, model));
  flags.run.seed = flags.seed >= 0 ? static_cast<uint64_t>(flags.seed) : model.train.seed;
  if (flags.replicas > 0) {
    flags.run.threads = flags.replicas;
    flags.run.threads_are_replicas = true;
  }
  flags.run.precision = flags.precision.value_or(model.train.precision);
  MUSTER_RETURN_IF_ERROR(train::ReadTaskEnvironment(clock, &flags.run));
  if (flags.run.task_type != "ps") MUSTER_RETURN_IF_ERROR(ResolveTensorFlow(model, &flags.run));
  CheckProtected(flags.protection, flags.run, flags.eval);
  const train::TrainSpec spec = TrainSpecOf(flags, model.train);
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
                                             .rendezvous_seconds = flags.rendezvous_seconds,
                                             .stop = &InterruptScope::requested(),
                                             .leaving = &InterruptScope::terminated(),
                                             .stall_seconds = flags.stall_seconds,
                                             .note = SayOfJob};
  return RunRoleOnce(flags, model, spec, options, *files, clock);
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
                          model::LoadModelSpec(*files::OpenFileSystems(), flags.spec));
  MUSTER_RETURN_IF_ERROR(CheckEvaluation(flags.eval, model));
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
  job.rendezvous_seconds = flags.rendezvous_seconds;
  MUSTER_ASSIGN_OR_RETURN(const auto local, LocalOptionsOf(job));
  MUSTER_ASSIGN_OR_RETURN(JobRequest request, RequestOf(job));
  request.spec.needs_evaluator = false;  // the chief waits for it, and does not succeed without
  if (flags.min_workers > 0) {           // beside the chief
    request.spec.min_workers = flags.min_workers - 1;
    request.spec.max_workers = flags.workers - 1;
  }
  return StartJob(request, local, /*detach=*/false);
}

}  // namespace muster::cli
