#include "muster/train/run_training.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"

#include "muster/base/agreement.h"
#include "muster/base/crc32c.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/checkpoint/checkpoint_state.h"
#include "muster/data/batch_stream_reader.h"
#include "muster/data/source_set.h"
#include "muster/features/measure.h"
#include "muster/process/deadline.h"
#include "muster/train/cluster/finished_job.h"
#include "muster/train/first_pass.h"
#include "muster/train/input/data_files.h"
#include "muster/train/input/shards.h"
#include "muster/train/learned_check.h"
#include "muster/train/loop/evaluations.h"

namespace muster::train {
namespace {

// The longest time that a task of a job that has already ended waits for the others.
constexpr double kSecondsForEnded = 10;
constexpr double kSecondsBetweenLooks = 0.2;

// A training that had ended before the evaluator was there.
class EndedTraining : public TrainingWatch {
 public:
  absl::StatusOr<bool> AwaitEnd(double) override { return true; }
  absl::Status Leave() override { return absl::OkStatus(); }
};

// Sets the data that this replica reads: one shard or, if replicas may leave and join, several.
absl::Status AssignShards(io::FileSystem& files, TrainingRequest* request) {
  TrainSpec& spec = request->train;
  // The writer of a stream has already chosen the batches of this replica.
  if (data::IsBatchStream(spec.input.source)) return absl::OkStatus();
  data::Shard& shard = spec.input.source.shard;
  const int fewest = request->role.min_replicas;
  if (fewest == 0 || spec.replicas == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(shard, GetShard(request->run, spec.input, files));
    return absl::OkStatus();
  }
  const int most = request->run.num_worker_replicas;
  spec.shards = GetShardCount(fewest, most);
  MUSTER_ASSIGN_OR_RETURN(shard, GetFirstShard(spec.shards, spec.input.source, files));
  // When all replicas are present, the memory is the same as with one shard for each.
  int& open_chunks = spec.input.reader.open_chunks;
  open_chunks = std::max(1, open_chunks * most / spec.shards);
  int& chunks_ahead = spec.input.reader.chunks_ahead;
  if (chunks_ahead > 0) chunks_ahead = std::max(1, chunks_ahead * most / spec.shards);
  return absl::OkStatus();
}

// Called in the chief before training: a replica with a larger share is not at fault.
absl::Status WarnOfUnevenShares(const TrainingRequest& request, io::FileSystem& files) {
  const TrainSpec& spec = request.train;
  const bool by_files = spec.input.source.shard.by == data::ShardBy::kFile;
  if (!request.run.is_chief || !by_files || data::IsBatchStream(spec.input.source)) {
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(const auto found, data::ListSources(files, spec.input.source));
  const std::string uneven =
      DescribeUnevenShares(found, request.run.num_worker_replicas, spec.shards);
  if (!uneven.empty()) request.role.context.Note(uneven);
  return absl::OkStatus();
}

// Trains, and also evaluates if that is this process's task.
absl::StatusOr<TrainAndEvaluateResult> Train(const TrainingRequest& request, Estimator& estimator,
                                             TrainingWatch* training, bool reports,
                                             const Clock& clock,
                                             const ReportProgressEvaluation& report) {
  const TrainSpec& spec = request.train;
  const std::atomic<bool>& stop = *request.role.context.stop;
  Progress progress(reports ? request.progress : ProgressStyle::kNone, STDERR_FILENO, clock);
  if (request.eval && reports) {
    EvalSpec eval = *request.eval;
    const auto& exported = estimator.model().spec.exported;
    if (exported && exported->evaluates_by_batch) {
      eval.input.reader.batch_size = spec.input.reader.batch_size;
    }
    eval.training = training;
    return TrainAndEvaluate(estimator, spec, eval, progress, stop,
                            [&](const EvalResult& result, const std::vector<std::string>& exports) {
                              if (report) report(progress, result, exports);
                            });
  }
  MUSTER_RETURN_IF_ERROR(EvaluatesItself(estimator.config(), spec.replicas).status());
  TrainAndEvaluateResult result;
  MUSTER_ASSIGN_OR_RETURN(result.training, estimator.Train(spec, progress, stop));
  return result;
}

// Finds the numbers that columns take from the training data: those of the model folder, those of
// the model with whose weights the training begins, or those of a first pass. Their checksum
// becomes a term of the agreement, since replicas that do not see the folder compute them
// themselves.
absl::Status FindNumbers(io::FileSystem& files, const Clock& clock, TrainingRequest* request) {
  model::ModelSpec& model = request->model;
  if (!features::DependsOnData(model.features)) return absl::OkStatus();
  const std::string& type = request->run.task_type;
  std::string numbers = kUnknownTerm;
  if (type != "ps" && type != "evaluator") {
    MUSTER_RETURN_IF_ERROR(CopyMeasured(files, request->run.model_dir, &model));
    std::vector<std::string> origins = {request->continue_from};
    if (!request->warm_start.empty()) {
      MUSTER_ASSIGN_OR_RETURN(const WarmStart start, ParseWarmStart(request->warm_start));
      origins.push_back(start.from);
    }
    for (const std::string& origin : origins) {
      if (origin.empty()) continue;
      MUSTER_RETURN_IF_ERROR(CopyMeasured(files, origin, &model));
      MUSTER_RETURN_IF_ERROR(CopyMeasured(files, io::Dirname(origin), &model));
    }
    Progress progress(request->run.is_chief ? request->progress : ProgressStyle::kNone,
                      STDERR_FILENO, clock);
    MUSTER_RETURN_IF_ERROR(
        MeasureColumns(files, request->train.input, progress, *request->role.context.stop, &model));
    numbers = absl::StrFormat("%08x", Crc32c(features::PrintMeasured(model.features)));
  }
  std::string& agreement = request->role.context.agreement;
  agreement += StrCat(agreement.empty() ? "" : "; ",
                      PrintAgreement({{"numbers of columns from the data", numbers}}));
  return absl::OkStatus();
}

// Warns if, on a sample of its training data, the model has not even learned the mean of its
// labels. Errors are ignored: they must not make a finished training fail.
void WarnIfUnlearned(const TrainingRequest& request, const TrainAndEvaluateResult& result,
                     Estimator& estimator, const Clock& clock) {
  if (!request.warns_if_unlearned || !HasLearnedRule(estimator.model().spec)) return;
  const TrainSpec& spec = request.train;
  const TrainResult& trained = result.training;
  const auto examples = trained.records ? static_cast<double>(trained.records->trained)
                                        : static_cast<double>(trained.examples);
  if (trained.interrupted || trained.nothing_left || examples < kCheckedExamples) return;
  if (spec.input_fn || spec.input.growth || data::IsBatchStream(spec.input.source)) return;
  constexpr int kBatch = 1024, kBatches = 10;
  EvalSpec sample = {.input = spec.input, .steps = kBatches};
  sample.input.source.shard = {};
  sample.input.source.note = {};
  sample.input.reader.batch_size = kBatch;
  sample.input.reader.shuffle = true;
  sample.input.reader.epochs = 1;
  sample.input.reader.drop_remainder = false;
  sample.input.watch_data = false;
  const auto evaluated = estimator.EvaluateQuietly(sample);
  if (!evaluated.ok()) return;
  const std::string unlearned = DescribeUnlearned(estimator.model().spec, evaluated->metrics,
                                                  static_cast<double>(evaluated->examples));
  if (!unlearned.empty()) Progress(request.progress, STDERR_FILENO, clock).Warn(unlearned);
}

absl::StatusOr<ClusterRole> FindRole(const TrainingRequest& request, bool has_ended,
                                     const Clock& clock) {
  if (!has_ended) return JoinFromEnvironment(request.run, request.role, clock);
  ClusterRole role;
  role.training = std::make_unique<EndedTraining>();
  return role;
}

// Runs a process that trains alone, or a replica, or the evaluator; `has_ended`: of a training that
// has ended.
absl::StatusOr<TrainingOutcome> RunRole(TrainingRequest request, bool has_ended,
                                        io::FileSystem& files, const Clock& clock,
                                        const ReportProgressEvaluation& report) {
  MUSTER_ASSIGN_OR_RETURN(const ClusterRole role, FindRole(request, has_ended, clock));
  TrainSpec& spec = request.train;
  spec.replicas = role.replicas.get();
  MUSTER_RETURN_IF_ERROR(AssignShards(files, &request));
  MUSTER_RETURN_IF_ERROR(WarnOfUnevenShares(request, files));
  const bool reports = spec.replicas == nullptr || spec.replicas->is_chief();
  if (reports) {
    spec.hooks.insert(spec.hooks.begin(), request.chief_hooks.begin(), request.chief_hooks.end());
  }
  MUSTER_ASSIGN_OR_RETURN(const auto estimator,
                          Estimator::Create(files, clock, request.model, request.run));
  if (const std::string leak = DescribeLabelAsFeature(request.model); reports && !leak.empty()) {
    Progress(request.progress, STDERR_FILENO, clock).Warn(leak);
  }
  if (!request.warm_start.empty()) {
    MUSTER_ASSIGN_OR_RETURN(WarmStart start, ParseWarmStart(request.warm_start));
    MUSTER_ASSIGN_OR_RETURN(start.vocabularies, ChangedVocabularies(files, start, request.model));
    estimator->set_warm_start(std::move(start));
  }
  estimator->set_origin(request.continue_from);
  TrainingOutcome outcome = {.reports = reports && role.training == nullptr};
  MUSTER_ASSIGN_OR_RETURN(outcome.result,
                          Train(request, *estimator, role.training.get(), reports, clock, report));
  if (outcome.reports) WarnIfUnlearned(request, outcome.result, *estimator, clock);
  return outcome;
}

// Returns the record of the finished job with which this task would have nothing left to do;
// nullopt if each run of the same request trains anew.
std::optional<FinishedJob> MakeFinishedJob(const TrainingRequest& request) {
  const bool is_task = !request.run.cluster.empty() || request.run.task_type == "evaluator";
  const bool is_new_each_time = request.train.fresh_data || request.train.steps.has_value() ||
                                data::IsBatchStream(request.train.input.source);
  if (!is_task || is_new_each_time) return std::nullopt;
  const std::string rules = request.run.is_chief ? request.stopping_rules : kUnknownTerm;
  return FinishedJob{.job = request.run.job,
                     .agreement = StrCat(request.role.context.agreement, "; ",
                                         PrintAgreement({{"early stop", rules}}))};
}

// Whether a task ended because others did not join in time. The others get the chief's error as
// FAILED_PRECONDITION.
bool IsMissingTask(const absl::Status& status, bool is_chief) {
  return absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status) ||
         (!is_chief && absl::IsFailedPrecondition(status));
}

absl::StatusOr<TrainingOutcome> RunTask(const TrainingRequest& request, io::FileSystem& files,
                                        const Clock& clock,
                                        const ReportProgressEvaluation& report) {
  if (request.run.task_type != "ps") {
    return RunRole(request, /*has_ended=*/false, files, clock, report);
  }
  MUSTER_RETURN_IF_ERROR(RunParameterServer(request.run, request.role, request.model, files));
  return TrainingOutcome();
}

// Whether this run has done anything.
bool HasWorked(const TrainAndEvaluateResult& result) {
  return result.evaluation || result.training.step > result.training.first_step;
}

// A task of a job whose end is recorded in the model folder: the chief writes the record, and a
// task that is started after the end, or was away during it, has nothing left to do.
class RecordedTask {
 public:
  RecordedTask(TrainingRequest request, FinishedJob job, io::FileSystem& files, const Clock& clock,
               const ReportProgressEvaluation& report)
      : request_(std::move(request)),
        job_(std::move(job)),
        files_(files),
        clock_(clock),
        report_(report) {}

  absl::StatusOr<TrainingOutcome> Run() {
    if (is_evaluator() && StaysFinished()) return EndWithoutOthers("");
    const bool has_ended = !is_evaluator() && HasFinished();
    if (has_ended) ExpectNobody();
    return request_.run.is_chief ? RunChief(has_ended) : RunOther(has_ended);
  }

 private:
  absl::StatusOr<TrainingOutcome> RunChief(bool has_ended);
  absl::StatusOr<TrainingOutcome> RunOther(bool has_ended);
  absl::StatusOr<TrainingOutcome> EndWithoutOthers(std::string_view why);
  void ExpectNobody();
  bool StaysFinished() const;
  bool MustEvaluateLast() const;
  bool HasFinished() const { return train::HasFinished(files_, model_dir(), job_); }
  void WriteEnd() const;

  bool is_evaluator() const { return request_.run.task_type == "evaluator"; }
  const std::string& model_dir() const { return request_.run.model_dir; }
  const TaskContext& context() const { return request_.role.context; }
  // How long a task of an ended job waits for the others.
  double patience() const {
    const double seconds = request_.role.rendezvous_seconds;
    return seconds > 0 ? std::min(seconds, kSecondsForEnded) : kSecondsForEnded;
  }

  TrainingRequest request_;
  const FinishedJob job_;
  io::FileSystem& files_;
  const Clock& clock_;
  const ReportProgressEvaluation& report_;
};

absl::StatusOr<TrainingOutcome> RecordedTask::RunChief(bool has_ended) {
  if (!has_ended) RemoveFinishedJob(files_, model_dir());
  // A chief that is killed after the others have ended must not wait for them when it is started
  // again.
  bool is_written = false;
  request_.train.before_others_end = [&] {
    if (!std::exchange(is_written, true)) WriteEnd();
  };
  auto outcome = RunTask(request_, files_, clock_, report_);
  if (has_ended && IsMissingTask(outcome.status(), /*is_chief=*/true)) {
    return EndWithoutOthers(StrCat(" (", outcome.status().message(), ")"));
  }
  if (outcome.ok() && !outcome->result.training.interrupted) request_.train.before_others_end();
  return outcome;
}

absl::StatusOr<TrainingOutcome> RecordedTask::RunOther(bool has_ended) {
  // A task that was away at the end must not wait for the others.
  std::optional<FinishedJobWatch> watch;
  if (!has_ended) {
    watch.emplace(files_, model_dir(), job_);
    request_.role.context.has_ended = [&watch] { return watch->Look(); };
  }
  auto outcome = RunTask(request_, files_, clock_, report_);
  const bool waited_in_vain =
      outcome.ok() ? !HasWorked(outcome->result) : absl::IsCancelled(outcome.status());
  if (watch && watch->has_finished() && waited_in_vain) return EndWithoutOthers("");
  // A task that was cut off from the others may miss the end of the job.
  if (IsMissingTask(outcome.status(), /*is_chief=*/false) && (has_ended || HasFinished())) {
    return EndWithoutOthers(StrCat(" (", outcome.status().message(), ")"));
  }
  return outcome;
}

// `why` follows the words that nothing is left to do.
absl::StatusOr<TrainingOutcome> RecordedTask::EndWithoutOthers(std::string_view why) {
  const std::string ended = StrCat("job '", request_.run.job, "' has ended before, and ",
                                   model_dir(), " has its last checkpoint: ");
  if (!MustEvaluateLast()) {
    context().Note(StrCat(ended, "nothing is left to do", why));
    return TrainingOutcome();
  }
  context().Note(StrCat(ended, "it is evaluated now"));
  return RunRole(request_, /*has_ended=*/true, files_, clock_, report_);
}

// The other tasks are gone, unless all were started again.
void RecordedTask::ExpectNobody() {
  request_.role.rendezvous_seconds = patience();
  request_.role.evaluator = false;
  request_.run.cluster.erase("evaluator");
}

// Whether the record is still there after a while: a chief that trains on by other --early-stop
// rules, which only the chief knows, removes it.
bool RecordedTask::StaysFinished() const {
  const auto deadline = process::Deadline::After(patience());
  while (HasFinished()) {
    if (deadline.expired() || context().stopped()) return true;
    std::this_thread::sleep_for(std::chrono::duration<double>(kSecondsBetweenLooks));
  }
  return false;
}

// Whether the evaluator of an ended job still has to evaluate the last checkpoint.
bool RecordedTask::MustEvaluateLast() const {
  if (!is_evaluator() || !request_.eval) return false;
  const auto newest = checkpoint::Latest(files_, model_dir());
  if (!newest.ok()) return false;
  const auto step = checkpoint::ParseIndexStep(io::Basename(*newest) + ".index");
  const auto done = ReadEvaluations(files_, EvalFolder(model_dir(), request_.eval->name));
  return step && done.ok() && !done->contains(*step);
}

void RecordedTask::WriteEnd() const {
  const absl::Status written = WriteFinishedJob(files_, model_dir(), job_);
  if (written.ok()) return;
  context().Note(StrCat("warning: could not record that the job has ended: ", written.message()));
}

}  // namespace

absl::StatusOr<TrainingOutcome> RunTraining(TrainingRequest request, io::FileSystem& files,
                                            const Clock& clock,
                                            const ReportProgressEvaluation& report) {
  MUSTER_RETURN_IF_ERROR(FindNumbers(files, clock, &request));
  auto job = MakeFinishedJob(request);
  if (!job) return RunTask(request, files, clock, report);
  return RecordedTask(std::move(request), *std::move(job), files, clock, report).Run();
}

}  // namespace muster::train
