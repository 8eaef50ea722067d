#include "muster/train/evaluator.h"

#include <memory>
#include <utility>

#include "muster/checkpoint/checkpoint_state.h"
#include "muster/checkpoint/lease.h"

namespace muster::train {
namespace {

// How often the evaluator looks for a checkpoint; the end of the training wakes it earlier.
constexpr double kLookSeconds = 0.5;

struct Found {
  std::string prefix = {};
  int64_t step = -1;  // -1: there is none yet
  std::string passed_over = {};
};

absl::StatusOr<Found> Newest(io::FileSystem& files, const std::string& model_dir) {
  const auto latest = checkpoint::FindLatest(files, model_dir);
  if (absl::IsNotFound(latest.status())) return Found();
  MUSTER_RETURN_IF_ERROR(latest.status());
  const auto step = checkpoint::ParseIndexStep(io::Basename(latest->prefix) + ".index");
  return Found{latest->prefix, step.value_or(-1), checkpoint::DescribePassedOver(*latest)};
}

class Evaluator {
 public:
  Evaluator(Estimator& estimator, const EvalSpec& spec, const ReportEvaluation& report,
            Progress& progress)
      : estimator_(estimator), progress_(progress), evaluations_(estimator, spec, report) {}

  absl::Status Begin() { return evaluations_.Begin(estimator_.files()); }

  // Evaluates a new checkpoint if it is time for one; not that of step 0, which is not trained.
  absl::Status Look() {
    if (!evaluations_.IsTime()) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const Found newest,
                            Newest(estimator_.files(), estimator_.config().model_dir));
    if (newest.step <= 0 || newest.step == evaluations_.last_step()) return absl::OkStatus();
    const absl::Status status = Evaluate(newest, /*is_final=*/false);
    // The chief removed the checkpoint meanwhile; there is a newer one.
    const bool gone = absl::IsNotFound(estimator_.files().Stat(newest.prefix + ".index").status());
    return gone ? absl::OkStatus() : status;
  }

  absl::Status Finish() {
    MUSTER_ASSIGN_OR_RETURN(const Found newest,
                            Newest(estimator_.files(), estimator_.config().model_dir));
    if (newest.step < 0) {
      return absl::FailedPreconditionError(StrCat(
          "training has ended, and there is no checkpoint in ", estimator_.config().model_dir,
          ": give the chief and the evaluator one --model-dir on a file system that both see"));
    }
    return Evaluate(newest, /*is_final=*/true);
  }

  TrainAndEvaluateResult Result() const {
    return {.training = {.step = evaluations_.last_step().value_or(0)},
            .evaluation = evaluations_.result(),
            .exports = evaluations_.exports()};
  }

 private:
  absl::Status Evaluate(const Found& found, bool is_final) {
    MUSTER_ASSIGN_OR_RETURN(const auto lease, checkpoint::Lease::Acquire(
                                                  estimator_.files(), found.prefix, "evaluator-0"));
    if (!found.passed_over.empty()) progress_.Warn(found.passed_over);
    estimator_.set_checkpoint(found.prefix);
    return is_final ? evaluations_.Finish(found.step, progress_)
                    : evaluations_.Evaluate(found.step, /*is_final=*/false, progress_);
  }

  Estimator& estimator_;
  Progress& progress_;
  CheckpointEvaluator evaluations_;
};

}  // namespace

absl::StatusOr<TrainAndEvaluateResult> RunEvaluator(Estimator& estimator, const EvalSpec& spec,
                                                    TrainingWatch& training, Progress& progress,
                                                    const std::atomic<bool>& stop,
                                                    const ReportEvaluation& report) {
  MUSTER_RETURN_IF_ERROR(Validate(spec));
  Evaluator evaluator(estimator, spec, report, progress);
  MUSTER_RETURN_IF_ERROR(evaluator.Begin());
  MUSTER_RETURN_IF_ERROR(estimator.CheckData(spec));
  bool ended = false;
  while (!ended) {
    const absl::StatusOr<bool> heard = training.AwaitEnd(kLookSeconds);
    if (stop) {
      TrainAndEvaluateResult result = evaluator.Result();
      result.training.interrupted = true;
      return result;
    }
    MUSTER_RETURN_IF_ERROR(Annotate(heard.status(), "evaluator"));
    ended = *heard;
    const absl::Status evaluated = ended ? evaluator.Finish() : evaluator.Look();
    if (stop && absl::IsCancelled(evaluated)) {
      ended = false;  // continue: the check of `stop` above returns
      continue;
    }
    MUSTER_RETURN_IF_ERROR(evaluated);
  }
  // The evaluator's work is done even if the chief cannot be told any more.
  const absl::Status left = training.Leave();
  if (!left.ok())
    progress.Warn(StrCat("could not tell the chief that the evaluator is done: ", left.message()));
  return evaluator.Result();
}

}  // namespace muster::train
