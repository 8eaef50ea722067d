#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "CLI/CLI.hpp"
#include "muster/base/crc32c.h"
#include "muster/base/number_text.h"
#include "muster/cli/common/help.h"
#include "muster/cli/common/output_checks.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/train/model_flags.h"
#include "muster/cli/train/part_jobs.h"
#include "muster/cli/train/verbs.h"
#include "muster/files/file_systems.h"
#include "muster/score/evaluation_batch.h"
#include "muster/score/inference.h"
#include "muster/train/estimator.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

constexpr char kSuffix[] = ".metrics";
constexpr uint64_t kMaxStateBytes = uint64_t{1} << 36;

struct EvaluateFlags {
  TrainedModelFlags trained;
  DataFlags data;
  train::EvalSpec eval = {.steps = std::nullopt};
  metrics::MetricsSpec metrics;
  HookCallFlags calls;
  OutputFlags output;
  PartFlags parts;
};

// Returns the model file's settings, replaced by flags where these are given.
metrics::MetricsSpec MakeMetrics(const EvaluateFlags& flags, metrics::MetricsSpec metrics) {
  const metrics::MetricsSpec& given = flags.metrics;
  if (!given.thresholds.empty()) metrics.thresholds = given.thresholds;
  if (!given.top_k.empty()) metrics.top_k = given.top_k;
  if (given.per_class) metrics.per_class = true;
  if (!given.group.empty()) metrics.group = given.group;
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
                  "Means of prediction and label in N buckets of the prediction, and their error")
      ->check(CLI::Range(1, 10000));
  verb.add_option("--group", metrics->group,
                  "AUC within the rows of each value of this input, such as a user's id: gauc")
      ->type_name("INPUT");
}

// INVALID_ARGUMENT for metrics that a model of `spec` does not have.
absl::Status CheckMetrics(const EvaluateFlags& flags, const model::ModelSpec& spec) {
  if (!spec.exported) {
    const metrics::MetricsSpec wanted = MakeMetrics(flags, spec.metrics);
    if (!wanted.group.empty()) MUSTER_RETURN_IF_ERROR(model::CheckGroup(spec, wanted.group));
    return metrics::Validate(wanted, spec.head);
  }
  if (flags.metrics == metrics::MetricsSpec()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--thresholds, --top-k, --per-class, --calibration-buckets and --group are for models of a "
      "model file: an exported model has the metrics that muster.keras.export was given");
}

train::EvalSpec MakeEvalSpec(const EvaluateFlags& flags, const TrainedModel& model) {
  train::EvalSpec eval = flags.eval;
  eval.input =
      SequentialInput(flags.data, model.estimator->model().spec.format, kInferenceBatchSize);
  eval.input.watch_words = true;
  eval.metrics = MakeMetrics(flags, model.estimator->model().spec.metrics);
  eval.needs_events = false;
  return eval;
}

void PrintResult(const EvaluateFlags& flags, const train::EvalResult& result) {
  if (!result.events.ok()) {
    std::fprintf(stderr, "warning: the metrics are in no event file: %s\n",
                 std::string(result.events.message()).c_str());
  }
  if (!flags.output.json) {
    std::printf("Evaluated %llu examples with %s in %s%s\n",
                static_cast<unsigned long long>(result.examples), result.checkpoint.c_str(),
                FormatDuration(result.seconds).c_str(), LeftOut(result.bad_records).c_str());
  }
  PrintMetrics(flags.output, "evaluated", result);
}

absl::Status RunEvaluate(const EvaluateFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const auto model, OpenTrainedModel(flags.trained));
  RefuseUnlessOk(CheckMetrics(flags, model->estimator->model().spec));
  train::EvalSpec eval = MakeEvalSpec(flags, *model);
  MUSTER_ASSIGN_OR_RETURN(const auto calls, GetHookCalls(flags.calls));
  AddCalledHook(calls, train::ModeKeys::kEval, &eval.hooks);
  MUSTER_ASSIGN_OR_RETURN(const auto rejects, OpenRejects(*model->files, flags.data.rejects));
  eval.reject = RejectInto(rejects.get());
  train::EvalResult result;
  {
    train::Progress progress(MakeStyle(flags.output), STDERR_FILENO, model->clock);
    MUSTER_ASSIGN_OR_RETURN(result, model->estimator->Evaluate(eval, progress));
  }
  if (rejects != nullptr) MUSTER_RETURN_IF_ERROR(rejects->Close());
  PrintResult(flags, result);
  return absl::OkStatus();
}

absl::StatusOr<score::PartPlan> MakePlan(const EvaluateFlags& flags, const std::string& checkpoint,
                                         io::FileSystem& files) {
  const bool exact = flags.trained.run.inference_precision == engine::Precision::kFloat32;
  const std::string rejects =
      flags.data.rejects.empty() ? "" : StrCat(", kept in ", flags.data.rejects);
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec,
                          score::LoadModelDir(files, flags.trained.run.model_dir));
  const train::InputSpec input = SequentialInput(flags.data, spec.format, kInferenceBatchSize);
  const int batch_size = input.reader.batch_size;
  return score::MakePartPlan(
      files, {.patterns = flags.data.patterns,
              .schemes = input.source.schemes,
              .format = input.source.format,
              .model_dir = flags.trained.run.model_dir,
              .checkpoint = checkpoint.empty() ? flags.trained.checkpoint : checkpoint,
              .settings = StrCat("batches of ", batch_size, ", ", exact ? "fp32" : "bf16", ", top ",
                                 absl::StrJoin(flags.metrics.top_k, ","), ", group '",
                                 MakeMetrics(flags, spec.metrics).group, "', at most ",
                                 flags.data.max_bad_records, " bad records a part", rejects,
                                 DescribeFormatFlags(flags.data)),
              .suffix = kSuffix,
              .processes = flags.parts.workers,
              .batch_size = batch_size});
}

// An evaluation of another checkpoint, data or settings has another folder; how the data is cut
// does not matter.
std::string GetFolder(const EvaluateFlags& flags, score::PartPlan plan) {
  plan.parts = plan.multiple = 1;
  plan.by_record = false;
  const std::string eval = train::EvalFolder(flags.trained.run.model_dir, flags.eval.name);
  return io::JoinPath(eval, absl::StrFormat("parts-%08x", Crc32c(score::Print(plan))));
}

void PrintPart(const EvaluateFlags& flags, int part, const metrics::State& state) {
  if (flags.output.json) {
    const nlohmann::ordered_json object = {{"event", "evaluated part"},
                                           {"part", part},
                                           {"examples", state.rows},
                                           {"bad_records", state.bad_records}};
    std::printf("%s\n", object.dump().c_str());
  } else {
    std::printf("Evaluated part %d: %llu examples%s\n", part,
                static_cast<unsigned long long>(state.rows), LeftOut(state.bad_records).c_str());
  }
  std::fflush(stdout);
}

// Makes those parts of this worker that are not done. A signal ends it at once: an unfinished part
// has no name yet.
absl::Status MakeParts(const EvaluateFlags& flags, const score::PartPlan& plan,
                       const std::string& folder, TrainedModel& model) {
  train::EvalSpec eval = MakeEvalSpec(flags, model);
  for (int part = std::max(flags.parts.task, 0); part < plan.parts; part += flags.parts.workers) {
    MUSTER_ASSIGN_OR_RETURN(const bool done, score::PartIsDone(*model.files, folder, plan, part));
    if (done) continue;
    eval.input.source.shard = plan.GetShard(part);
    MUSTER_ASSIGN_OR_RETURN(const std::string path,
                            RejectsPath(*model.files, flags.data.rejects, plan, part));
    MUSTER_ASSIGN_OR_RETURN(const auto rejects, OpenRejects(*model.files, path));
    eval.reject = RejectInto(rejects.get());
    train::Progress progress(MakeStyle(flags.output), STDERR_FILENO, model.clock);
    MUSTER_ASSIGN_OR_RETURN(const metrics::State state,
                            model.estimator->EvaluatePart(eval, progress));
    if (rejects != nullptr) MUSTER_RETURN_IF_ERROR(rejects->Close());
    MUSTER_RETURN_IF_ERROR(io::WriteFileAtomically(
        *model.files, score::PartPath(folder, plan, part), metrics::Serialize(state)));
    if (flags.parts.task >= 0) PrintPart(flags, part, state);
  }
  return absl::OkStatus();
}

absl::Status RunTask(EvaluateFlags flags) {
  const auto files = files::OpenFileSystems();
  MUSTER_RETURN_IF_ERROR(ResolveNewest(*files, /*fall_back=*/true, &flags.trained));
  MUSTER_ASSIGN_OR_RETURN(const score::PartPlan wanted, MakePlan(flags, "", *files));
  const std::string folder = GetFolder(flags, wanted);
  MUSTER_ASSIGN_OR_RETURN(const score::PartPlan plan, score::OpenPartPlan(*files, folder, wanted));
  flags.trained.checkpoint = plan.checkpoint;
  flags.trained.reader = DescribeReader("evaluate", flags.parts);
  MUSTER_ASSIGN_OR_RETURN(const auto model, OpenTrainedModel(flags.trained));
  return MakeParts(flags, plan, folder, *model);
}

absl::StatusOr<train::EvalResult> MergeParts(const EvaluateFlags& flags,
                                             const score::PartPlan& plan, const std::string& folder,
                                             TrainedModel& model, train::Progress& progress) {
  int part = 0;
  const auto next = [&]() -> absl::StatusOr<std::optional<metrics::State>> {
    if (part == plan.parts) return std::nullopt;
    const std::string path = score::PartPath(folder, plan, part++);
    MUSTER_ASSIGN_OR_RETURN(const std::string bytes,
                            io::ReadFile(*model.files, path, kMaxStateBytes));
    auto state = metrics::ParseState(bytes, path);
    if (state.ok()) return *std::move(state);
    return absl::DataLossError(
        StrCat(state.status().message(), "; remove it, and the same command makes it again"));
  };
  return model.estimator->MergeEvaluation(MakeEvalSpec(flags, model), next, progress);
}

// Runs a job with a task for each worker, then merges what all have found. When the result is
// written, the parts are removed: the same command then evaluates anew.
absl::Status RunParts(EvaluateFlags flags, const std::vector<std::string>& arguments) {
  const SystemClock clock;
  train::Progress progress(train::ProgressStyle::kNone, STDERR_FILENO, clock);
  const auto files = files::OpenFileSystems();
  // Errors of the model or the flags are reported once, before anything starts.
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec,
                          score::LoadModelDir(*files, flags.trained.run.model_dir));
  RefuseUnlessOk(CheckMetrics(flags, spec));
  MUSTER_RETURN_IF_ERROR(ResolveNewest(*files, /*fall_back=*/true, &flags.trained));
  std::string leased;  // held until the last worker that was started again has read it
  const auto lease = LeaseOn(*files, flags.trained, &leased);
  MUSTER_ASSIGN_OR_RETURN(const score::PartPlan wanted, MakePlan(flags, leased, *files));
  const std::string folder = GetFolder(flags, wanted);
  const auto opened = score::OpenPartPlan(*files, folder, wanted);
  if (absl::IsPermissionDenied(opened.status())) {
    return Annotate(opened.status(),
                    "--workers keep their parts in --model-dir until all are complete, and this "
                    "folder cannot be written; evaluate without --workers");
  }
  MUSTER_ASSIGN_OR_RETURN(const score::PartPlan plan, opened);
  MUSTER_ASSIGN_OR_RETURN(const auto done, PartsDone(*files, folder, plan));
  PrintDoneParts(folder, done);
  const bool missing = std::find(done.begin(), done.end(), false) != done.end();
  const bool is_job = flags.parts.workers > 1 || flags.parts.is_elsewhere();
  if (missing && is_job) {
    MUSTER_RETURN_IF_ERROR(RunPartJob("evaluate", flags.parts, arguments, plan.checkpoint, stderr));
  }
  flags.trained.checkpoint = plan.checkpoint;
  MUSTER_ASSIGN_OR_RETURN(const auto model, OpenTrainedModel(flags.trained));
  if (missing && !is_job) {
    MUSTER_RETURN_IF_ERROR(MakeParts(flags, plan, folder, *model));
  }
  MUSTER_ASSIGN_OR_RETURN(const train::EvalResult result,
                          MergeParts(flags, plan, folder, *model, progress));
  PrintResult(flags, result);
  return files->RemoveAll(folder);
}

// Chooses the batch size of the training if the value of an evaluation depends on it.
void ChooseBatchSize(EvaluateFlags* flags) {
  if (flags->data.batch_size > 0) return;
  const auto files = files::OpenFileSystems();
  const auto spec = score::LoadModelDir(*files, flags->trained.run.model_dir);
  if (!spec.ok()) return;
  flags->data.batch_size = score::EvaluationBatchSize(*files, *spec, flags->trained.run.model_dir,
                                                      flags->trained.checkpoint);
}

absl::Status CheckEvaluateParts(io::FileSystem& files, const EvaluateFlags& flags) {
  MUSTER_RETURN_IF_ERROR(CheckParts(files, flags.parts, flags.data, flags.calls));
  MUSTER_RETURN_IF_ERROR(CheckPartPath(flags.parts, "MODEL", flags.trained.run.model_dir));
  if (!flags.eval.steps) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--steps counts batches of one process: with --workers all of the data is evaluated");
}

}  // namespace

void AddEvaluate(CLI::App& app, const std::vector<std::string>& arguments) {
  const auto flags = std::make_shared<EvaluateFlags>();
  CLI::App* verb = app.add_subcommand("evaluate", "Measure a trained model on data with labels");
  verb->footer(
      "Examples:\n"
      "  muster evaluate model --data 'data/test/part-*'\n"
      "With several processes, any of which may die; if all die, run the same again:\n"
      "  muster evaluate model --data 'data/test/part-*' --workers 2");
  AddTrainedModelFlags(*verb, &flags->trained);
  AddDataFlags(*verb, "--data",
               "CSV, TFRecord or JSON lines: files, globs, or - for batches of a program",
               &flags->data, "; with --workers, of each part");
  AddRejectsFlag(*verb, &flags->data);
  AddFormatFlags(*verb, &flags->data.format);
  AddKafkaFlags(*verb, &flags->data.kafka);
  verb->add_option("--steps", flags->eval.steps, "Batches at most (default: all)")
      ->check(CLI::PositiveNumber);
  verb->add_option("--name", flags->eval.name, "Events go to eval_NAME instead of eval");
  AddMetricsFlags(*verb, &flags->metrics);
  AddThreadsFlag(*verb, &flags->trained.run);
  AddTensorFlowFlag(*verb, &flags->trained.run);
  AddPrecisionFlag(
      *verb, "bf16: large layers in bfloat16, on AMX (default: fp32)",
      [flags](engine::Precision given) { flags->trained.run.inference_precision = given; });
  AddHookCallFlags(*verb, &flags->calls);
  AddOutputFlags(*verb, &flags->output);
  AddPartFlags(*verb,
               "Processes that evaluate, each some parts of the data: a job on this machine "
               "(docs/distributed.md)",
               &flags->parts);
  Group(*verb, kData, {"--data", "--batch-size"});
  Group(*verb, kMoreData, {"--max-bad-records", "--rejects"});
  Group(*verb, kMoreModel, {"--tensorflow", "--precision"});
  Group(*verb, kProcesses, {"--workers"});
  Group(*verb, kMoreProcesses, {"--task", "--restarts", "--job"});
  verb->callback([=] {
    if (flags->output.quiet) flags->data.note = nullptr;
    const auto files = files::OpenFileSystems();
    CheckRejectsPlace(*files, flags->data.rejects, "");
    RefuseUnlessOk(CheckNotData(*files, flags->data.patterns,
                                {{"--rejects", flags->data.rejects, flags->parts.workers > 0}}));
    ChooseBatchSize(flags.get());
    if (flags->parts.workers == 0) return FailUnlessOk(RunEvaluate(*flags));
    RefuseUnlessOk(CheckEvaluateParts(*files, *flags));
    FailUnlessOk(flags->parts.task >= 0 ? RunTask(*flags) : RunParts(*flags, arguments));
  });
}

}  // namespace muster::cli
