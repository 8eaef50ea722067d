#include "muster/cli/train/train_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/next_steps.h"
#include "muster/cli/common/output_checks.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/job_request.h"
#include "muster/cli/jobs/run_here.h"
#include "muster/cli/train/agreement.h"
#include "muster/cli/train/follow.h"
#include "muster/cli/train/model_text.h"
#include "muster/data/kafka/kafka_growth.h"
#include "muster/files/file_systems.h"
#include "muster/train/model_lease.h"
#include "muster/train/parameter_server/ps_cluster.h"
#include "muster/train/parameter_server/ps_variables.h"
#include "muster/train/weights/dynamic_tables.h"

namespace muster::cli {
namespace {

train::TrainSpec MakeTrainSpec(const TrainFlags& flags, const model::ModelSpec& model) {
  const model::TrainDefaults& defaults = model.train;
  train::TrainSpec spec;
  spec.input = SequentialInput(flags.data, model.format, defaults.batch_size);
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

absl::StatusOr<train::ClassWeights> GetClassWeights(const TrainFlags& flags,
                                                    const model::ModelSpec& model) {
  if (flags.class_weights.empty()) return train::ClassWeights();
  auto weights = train::ParseClassWeights(flags.class_weights, model);
  if (!weights.ok()) return Annotate(weights.status(), "--class-weight");
  return weights;
}

void AddCalls(const std::shared_ptr<train::HookCalls>& calls, train::TrainSpec* spec) {
  if (calls == nullptr) return;
  AddCalledHook(calls, train::ModeKeys::kTrain, &spec->hooks);
  if (auto listener = train::NewCalledListener(calls)) {
    spec->saving_listeners.push_back(std::move(listener));
  }
}

// None for a process that evaluates nothing.
absl::StatusOr<std::optional<train::EvalSpec>> GetEvaluation(
    const TrainFlags& flags, const model::ModelSpec& model,
    const std::shared_ptr<train::HookCalls>& calls) {
  if (flags.eval.data.patterns.empty()) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(train::EvalSpec eval, MakeEvalSpec(flags.eval, model.format));
  eval.input.reader.max_bad_records = flags.data.max_bad_records;
  AddCalledHook(calls, train::ModeKeys::kEval, &eval.hooks);
  return eval;
}

// What tasks do together, from their flags. Its context is not complete.
train::ClusterRoleOptions MakeRole(const TrainFlags& flags) {
  train::ClusterRoleOptions role;
  role.evaluator = flags.eval.evaluator;
  role.strategy = flags.strategy;
  role.ps.aggregate = flags.aggregate;
  role.ps.staleness = flags.staleness;
  role.certificates = flags.protection.certificates;
  role.plain_text = flags.protection.plain_text;
  role.min_replicas = flags.min_workers;
  role.rendezvous_seconds = flags.rendezvous_seconds;
  role.context.stop = &InterruptScope::requested();
  role.context.leaving = &InterruptScope::terminated();
  role.context.stall_seconds = flags.stall_seconds;
  role.context.note = SayOfJob;
  return role;
}

absl::StatusOr<train::TrainingRequest> MakeTraining(const TrainFlags& flags,
                                                    const model::ModelSpec& model,
                                                    io::FileSystem& files, const Clock& clock) {
  train::TrainSpec spec = MakeTrainSpec(flags, model);
  MUSTER_RETURN_IF_ERROR(
      SetFollowed(flags, model, files, clock, InterruptScope::requested(), &spec));
  MUSTER_ASSIGN_OR_RETURN(spec.input.class_weights, GetClassWeights(flags, model));
  MUSTER_ASSIGN_OR_RETURN(spec.input.cache, OpenCache(flags.cache));
  const auto cache = spec.input.cache;
  train::TrainingRequest request = {.model = model,
                                    .run = flags.run,
                                    .train = std::move(spec),
                                    .warm_start = flags.warm_start,
                                    .continue_from = flags.continue_from,
                                    .role = MakeRole(flags),
                                    .stopping_rules = absl::StrJoin(flags.eval.early_stops, ","),
                                    .progress = MakeStyle(flags.output)};
  MUSTER_ASSIGN_OR_RETURN(request.role.context.agreement,
                          MakeAgreement(flags, model, request.train, files));
  if (flags.run.task_type == "ps") return request;
  MUSTER_ASSIGN_OR_RETURN(request.chief_hooks, GetEarlyStops(flags.eval, flags.run.model_dir));
  MUSTER_RETURN_IF_ERROR(AddFollowGroup(flags, &request.chief_hooks));
  AddLoggingHooks(flags.logging, &request.chief_hooks);
  MUSTER_ASSIGN_OR_RETURN(const auto calls, GetHookCalls(flags.calls));
  AddCalls(calls, &request.train);
  MUSTER_ASSIGN_OR_RETURN(request.eval, GetEvaluation(flags, model, calls));
  if (request.eval) request.eval->input.cache = cache;
  if (request.eval && flags.follow && flags.data.held_back.share > 0) {
    request.eval->input.growth = data::NewRecordedGrowth(GetSegmentFolder(flags));
  }
  return request;
}

// An evaluator's TF_CONFIG need not list the others.
bool KnowsServers(const train::RunConfig& run) { return run.task_type != "evaluator"; }

// A setting that cannot be is wrong use; a model file that is broken without it is not.
absl::StatusOr<model::ModelSpec> LoadSpec(io::FileSystem& files, const TrainFlags& flags) {
  auto model = LoadModel(files, flags.spec, flags.settings);
  if (!model.ok() && !flags.settings.empty() && LoadModel(files, flags.spec).ok()) {
    RefuseUnlessOk(model.status());
  }
  return model;
}

absl::Status CheckModelDir(io::FileSystem& files, const TrainFlags& flags) {
  return CheckPlace(files, {.flag = "--model-dir", .path = flags.run.model_dir, .is_folder = true});
}

void SayWhatNext(const TrainFlags& flags) {
  if (flags.output.json || flags.output.quiet) return;
  const std::string& model = flags.run.model_dir;
  SayNextSteps({StrCat("muster evaluate ", model, " --data GLOB"),
                StrCat("muster predict ", model, " --data GLOB --out predictions.csv"),
                StrCat("muster tensorboard ", model)});
}

// Runs the training, and prints what it gave.
absl::Status RunAndPrint(const TrainFlags& flags, train::TrainingRequest request,
                         io::FileSystem& files, const Clock& clock) {
  std::optional<int64_t> reported;
  MUSTER_ASSIGN_OR_RETURN(
      const train::TrainingOutcome outcome,
      train::RunTraining(std::move(request), files, clock,
                         [&](train::Progress& progress, const train::EvalResult& result,
                             const std::vector<std::string>& exports) {
                           ReportEvaluation(flags.output, progress, result, exports,
                                            reported == result.step);
                           reported = result.step;
                         }));
  const train::TrainAndEvaluateResult& result = outcome.result;
  if (outcome.reports) PrintTrained(flags.output, result.training);
  if (result.training.interrupted) {
    return absl::CancelledError(StrCat("stopped by a signal at step ", result.training.step,
                                       "; the same command continues"));
  }
  if (result.evaluation) PrintEvaluated(flags.output, *result.evaluation, result.exports);
  const bool is_task = !flags.run.cluster.empty();  // whoever started the job says it
  if (outcome.reports && !is_task) SayWhatNext(flags);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<train::TrainingRequest> PrepareTraining(TrainFlags& flags, io::FileSystem& files,
                                                       const Clock& clock) {
  MUSTER_RETURN_IF_ERROR(CheckModelDir(files, flags));
  MUSTER_ASSIGN_OR_RETURN(model::ModelSpec model, LoadSpec(files, flags));
  // It is stored with the model, so that evaluate and predict need not be told.
  model.format = formats::Override(model.format, flags.data.format);
  RefuseUnlessOk(CheckEvaluation(flags.eval, model));
  RefuseUnlessOk(GetClassWeights(flags, model).status());
  flags.run.seed = flags.seed >= 0 ? static_cast<uint64_t>(flags.seed) : model.train.seed;
  if (flags.replicas > 0) {
    flags.run.threads = flags.replicas;
    flags.run.threads_are_replicas = true;
  }
  flags.run.precision = flags.precision.value_or(model.train.precision);
  MUSTER_RETURN_IF_ERROR(train::ReadTaskEnvironment(clock, &flags.run));
  if (flags.run.task_type != "ps") MUSTER_RETURN_IF_ERROR(ResolveTensorFlow(model, &flags.run));
  CheckProtected(flags.protection, flags.run, flags.eval);
  if (KnowsServers(flags.run)) {
    RefuseUnlessOk(train::ValidateMinWorkers(flags.run, MakeRole(flags)));
    RefuseUnlessOk(train::CheckStrategy(MakeRole(flags), flags.run.num_ps_replicas,
                                        flags.run.num_worker_replicas));
  }
  return MakeTraining(flags, model, files, clock);
}

absl::Status RunTrain(TrainFlags& flags) {
  const auto files = files::OpenFileSystems();
  const SystemClock clock;
  const InterruptScope interrupt;
  MUSTER_ASSIGN_OR_RETURN(train::TrainingRequest request, PrepareTraining(flags, *files, clock));
  return RunAndPrint(flags, std::move(request), *files, clock);
}

absl::Status CheckTogether(const TrainFlags& flags) {
  const bool several = flags.workers > 1 || flags.ps > 0 || flags.eval.evaluator;
  MUSTER_RETURN_IF_ERROR(
      train::CheckStrategy(MakeRole(flags), flags.ps, std::max(flags.workers, 1)));
  if (flags.min_workers > 0 && flags.ps > 0) {
    return absl::InvalidArgumentError(
        "--workers MIN:MAX is for all-reduce: with parameter servers give one number, or leave "
        "--ps out");
  }
  if (!several) return absl::OkStatus();
  if (flags.steps > 0) {
    return absl::InvalidArgumentError(
        "--steps counts from where one process begins: with "
        "--workers or --evaluator give --max-steps");
  }
  if (std::find(flags.data.patterns.begin(), flags.data.patterns.end(), "-") !=
      flags.data.patterns.end()) {
    return absl::InvalidArgumentError(
        "--train -: data from one pipe cannot be divided among the tasks of a job (--workers, "
        "--evaluator); give files");
  }
  return absl::OkStatus();
}

absl::StatusOr<model::ModelSpec> LoadCheckedModel(io::FileSystem& files, const TrainFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(model::ModelSpec model, LoadSpec(files, flags));
  RefuseUnlessOk(CheckEvaluation(flags.eval, model));
  RefuseUnlessOk(GetClassWeights(flags, model).status());
  if (flags.ps > 0) {
    MUSTER_RETURN_IF_ERROR(train::CheckServable(model));
  } else {
    MUSTER_RETURN_IF_ERROR(train::CheckReducible(model));
  }
  return model;
}

absl::Status RunReplicas(const TrainFlags& flags, const std::vector<std::string>& arguments) {
  // What is wrong with the model file is said once, and before anything starts.
  const auto files = files::OpenFileSystems();
  MUSTER_RETURN_IF_ERROR(CheckModelDir(*files, flags));
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec model, LoadCheckedModel(*files, flags));
  if (flags.hosts.empty()) {
    MUSTER_RETURN_IF_ERROR(train::CheckNobodyTrainsHere(*files, flags.run.model_dir));
  }
  MUSTER_RETURN_IF_ERROR(ForgetSegments(flags, *files));
  train::RunConfig resolved = flags.run;
  MUSTER_RETURN_IF_ERROR(ResolveTensorFlow(model, &resolved));
  MUSTER_ASSIGN_OR_RETURN(const std::string program, OwnProgram());
  JobFlags job;
  // A host has another muster, or gets one.
  job.command = {flags.hosts.empty() ? program : "muster", "worker"};
  job.hosts = flags.hosts;
  job.ssh = flags.ssh;
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
  // On hosts a replica may start again elsewhere. With fewer than all the others do not wait.
  job.restart_scope = flags.hosts.empty() || flags.min_workers > 0 ? "task" : "gang";
  job.rendezvous_seconds = flags.rendezvous_seconds;
  MUSTER_ASSIGN_OR_RETURN(const auto local, MakeLocalOptions(job));
  MUSTER_ASSIGN_OR_RETURN(JobRequest request, MakeRequest(job));
  request.spec.needs_evaluator = false;  // the chief waits for it, and does not succeed without
  if (flags.min_workers > 0) {           // beside the chief
    request.spec.min_workers = flags.min_workers - 1;
    request.spec.max_workers = flags.workers - 1;
  }
  MUSTER_RETURN_IF_ERROR(StartJob(request, local, /*detach=*/false));
  SayWhatNext(flags);
  return absl::OkStatus();
}

}  // namespace muster::cli
