#include "muster/train/train_and_evaluate.h"

#include <memory>
#include <utility>

#include "muster/train/evaluator.h"
#include "muster/train/loop/evaluations.h"
#include "muster/train/loop/training_metrics.h"

namespace muster::train {
namespace {

class EvaluationListener : public CheckpointListener {
 public:
  EvaluationListener(Estimator& estimator, const EvalSpec& spec, const ReportEvaluation& report,
                     const std::atomic<bool>& stop)
      : evaluator(estimator, spec, report),
        every_epoch_(spec.every_epoch),
        eval_folder_(EvalFolder(estimator.config().model_dir, spec.name)),
        stop_(stop) {}

  absl::Status Begin(Session& session) override { return evaluator.Begin(session.files); }

  // Decides when the save begins whether its checkpoint will be evaluated, so that early stopping
  // ends a training at the same step each time. Other saves hold up nothing. The checkpoint at the
  // start is untrained, or the run that made it has evaluated it; the last one is evaluated in End.
  bool WaitsForSave(Session& session, int64_t step) override {
    return is_due_ = !every_epoch_ && step != session.first_step && !stop_ && evaluator.IsTime();
  }

  absl::StatusOr<bool> AfterSave(Session& session, int64_t step) override {
    if (!std::exchange(is_due_, false)) return false;
    MUSTER_RETURN_IF_ERROR(Evaluate(session, step));
    return false;
  }

  bool WantsEpochs() const override { return every_epoch_; }

  absl::Status EndEpoch(Session& session, int64_t step) override {
    if (stop_) return absl::OkStatus();
    if (step == session.first_step) {
      // An earlier run trained this epoch, but may have been killed before its evaluation.
      MUSTER_ASSIGN_OR_RETURN(const auto earlier, ReadEvaluations(session.files, eval_folder_));
      if (earlier.contains(step)) return absl::OkStatus();
    }
    return Evaluate(session, step);
  }

  absl::Status End(Session& session, int64_t step) override {
    // After a signal the process must end soon.
    if (stop_) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(auto training, GetTraining(session));
    absl::Status evaluated = evaluator.Finish(step, session.progress, std::move(training));
    session.ending.interrupted |= Stopped(evaluated);
    return Stopped(evaluated) ? absl::OkStatus() : evaluated;
  }

  CheckpointEvaluator evaluator;

 private:
  absl::Status Evaluate(Session& session, int64_t step) {
    MUSTER_ASSIGN_OR_RETURN(auto training, GetTraining(session));
    const absl::Status evaluated =
        evaluator.Evaluate(step, /*is_final=*/false, session.progress, std::move(training));
    if (Stopped(evaluated)) return absl::OkStatus();  // the loop handles the stop
    MUSTER_RETURN_IF_ERROR(evaluated);
    ++session.evaluations;
    return absl::OkStatus();
  }

  // Without an epoch before the first step of this run.
  absl::StatusOr<TrainingSoFar> GetTraining(Session& session) const {
    TrainingSoFar training;
    training.records = session.data.records;
    if (!every_epoch_ || session.metrics->epoch() < 0) return training;
    training.epoch = EpochValues{.epoch = session.metrics->epoch() + 1};
    MUSTER_ASSIGN_OR_RETURN(training.epoch->metrics, session.metrics->Values());
    training.epoch->metrics.emplace_back("loss", session.metrics->loss());
    return training;
  }

  bool Stopped(const absl::Status& evaluated) const {
    return stop_ && absl::IsCancelled(evaluated);
  }

  const bool every_epoch_;
  const std::string eval_folder_;
  const std::atomic<bool>& stop_;
  bool is_due_ = false;  // the checkpoint that is being saved will be evaluated
};

}  // namespace

absl::StatusOr<bool> EvaluatesItself(const RunConfig& config, const Peers* replicas) {
  if (config.task_type == "evaluator" && config.task_id > 0) {
    return absl::InvalidArgumentError(
        StrCat("for distributed training, there can only be one evaluator task (with task id 0), "
               "given task id ",
               config.task_id));
  }
  if (replicas != nullptr) return replicas->is_chief() && !replicas->has_evaluator();
  const bool alone = config.cluster.empty() ? config.task_type == "worker"
                                            : config.num_worker_replicas == 1 &&
                                                  config.num_ps_replicas == 0 && config.is_chief;
  if (!alone) {
    return absl::UnimplementedError(
        StrCat("task ", config.task_id, " of type '", config.task_type,
               "' (TF_CONFIG): this program trains in one process; unset TF_CONFIG, or give a ",
               "cluster of one chief; 'muster worker' works with the others"));
  }
  return config.task_type != "chief";
}

absl::StatusOr<TrainAndEvaluateResult> TrainAndEvaluate(Estimator& estimator, TrainSpec train_spec,
                                                        EvalSpec eval_spec, Progress& progress,
                                                        const std::atomic<bool>& stop,
                                                        const ReportEvaluation& report) {
  MUSTER_RETURN_IF_ERROR(Validate(eval_spec));
  eval_spec.stop = &stop;
  const RunConfig& config = estimator.config();
  if (config.task_type == "evaluator" && config.task_id == 0 && eval_spec.training != nullptr) {
    return RunEvaluator(estimator, eval_spec, *eval_spec.training, progress, stop, report);
  }
  MUSTER_ASSIGN_OR_RETURN(const bool evaluates, EvaluatesItself(config, train_spec.replicas));
  TrainAndEvaluateResult result;
  if (!evaluates) {
    MUSTER_ASSIGN_OR_RETURN(result.training, estimator.Train(train_spec, progress, stop));
    return result;
  }
  MUSTER_RETURN_IF_ERROR(estimator.CheckData(eval_spec));
  const auto listener = std::make_shared<EvaluationListener>(estimator, eval_spec, report, stop);
  train_spec.saving_listeners.push_back(listener);
  MUSTER_ASSIGN_OR_RETURN(result.training, estimator.Train(train_spec, progress, stop));
  CheckpointEvaluator& evaluator = listener->evaluator;
  if (!evaluator.result() && !result.training.interrupted) {
    // Nothing was trained.
    MUSTER_RETURN_IF_ERROR(evaluator.Begin(estimator.files()));
    MUSTER_RETURN_IF_ERROR(evaluator.Finish(result.training.step, progress,
                                            {.epoch = {}, .records = result.training.records}));
  }
  result.evaluation = evaluator.result();
  result.exports = evaluator.exports();
  return result;
}

}  // namespace muster::train
