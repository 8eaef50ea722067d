#include "muster/train/train_and_evaluate.h"

#include <memory>
#include <utility>

namespace muster::train {
namespace {

class EvaluationListener : public CheckpointListener {
 public:
  EvaluationListener(Estimator& estimator, const EvalSpec& spec, const ReportEvaluation& report,
                     const std::atomic<bool>& stop)
      : estimator_(estimator), spec_(spec), report_(report), stop_(stop) {}

  absl::Status Begin(Session& session) override {
    start_nanos_ = session.clock.MonotonicNanos();
    return BeginExporters(session.files, session.clock);
  }

  // Decides here, at the checkpoint's own time, so that stopping by evaluations ends a training at
  // the same step each time. Most saves have no evaluation behind them, and hold nothing up.
  bool WaitsForSave(Session& session, int64_t step) override {
    return is_due_ = IsDue(session, step);
  }

  absl::StatusOr<bool> AfterSave(Session& session, int64_t step) override {
    if (!std::exchange(is_due_, false)) return false;
    MUSTER_RETURN_IF_ERROR(
        Evaluate(session.files, session.clock, session.progress, step, /*is_final=*/false));
    ++session.evaluations;
    return false;
  }

  absl::Status End(Session& session, int64_t step) override {
    // Who sent the signal waits for the end of the process.
    if (stop_) return absl::OkStatus();
    return Finish(session.files, session.clock, session.progress, step);
  }

  absl::Status BeginExporters(io::FileSystem& files, const Clock& clock) {
    const ExportContext context = Context(files, clock);
    for (const auto& exporter : spec_.exporters) {
      MUSTER_RETURN_IF_ERROR(exporter->Begin(context));
    }
    return absl::OkStatus();
  }

  // Evaluates the last checkpoint, unless that was done, and makes the final exports.
  absl::Status Finish(io::FileSystem& files, const Clock& clock, Progress& progress, int64_t step) {
    if (last_step_ == step && spec_.exporters.empty()) return absl::OkStatus();
    return Evaluate(files, clock, progress, step, /*is_final=*/true);
  }

  std::optional<EvalResult> result;
  std::vector<std::string> exports;

 private:
  // The checkpoint of the start is not trained, or was evaluated by the run that made it; the last
  // one has its turn in End.
  bool IsDue(const Session& session, int64_t step) const {
    if (step == session.first_step || stop_) return false;
    const int64_t now = session.clock.MonotonicNanos();
    if (Seconds(now - start_nanos_) < spec_.start_delay_secs) return false;
    return !last_step_ || Seconds(now - last_nanos_) >= spec_.throttle_secs;
  }

  static double Seconds(int64_t nanos) { return static_cast<double>(nanos) * 1e-9; }

  ExportContext Context(io::FileSystem& files, const Clock& clock) {
    const std::string& model_dir = estimator_.config().model_dir;
    return {files, clock, model_dir, EvalFolder(model_dir, spec_.name),
            [this](const std::string& folder) { return estimator_.Export(folder); }};
  }

  absl::Status Evaluate(io::FileSystem& files, const Clock& clock, Progress& progress, int64_t step,
                        bool is_final) {
    const bool again = last_step_ == step;
    if (!again) {
      Progress nested = progress.Nested();
      MUSTER_ASSIGN_OR_RETURN(result, estimator_.Evaluate(spec_, nested));
      progress.Exclude(nested.seconds());
      exports.clear();
    }
    const ExportContext context = Context(files, clock);
    const Metrics metrics(result->metrics.begin(), result->metrics.end());
    std::vector<std::string> made;
    for (const auto& exporter : spec_.exporters) {
      // What was exported before the end was known is not exported again.
      if (again && Exported(*exporter)) continue;
      MUSTER_ASSIGN_OR_RETURN(std::string folder, exporter->Export(context, metrics, is_final));
      if (!folder.empty()) made.push_back(std::move(folder));
    }
    exports.insert(exports.end(), made.begin(), made.end());
    last_step_ = step;
    last_nanos_ = clock.MonotonicNanos();
    if (report_ && (!again || !made.empty())) report_(*result, made);
    return absl::OkStatus();
  }

  bool Exported(const Exporter& exporter) const {
    for (const std::string& folder : exports) {
      if (io::Basename(io::Dirname(folder)) == exporter.name()) return true;
    }
    return false;
  }

  Estimator& estimator_;
  const EvalSpec& spec_;
  const ReportEvaluation& report_;
  const std::atomic<bool>& stop_;
  bool is_due_ = false;  // the checkpoint that is being saved
  int64_t start_nanos_ = 0;
  int64_t last_nanos_ = 0;
  std::optional<int64_t> last_step_;
};

}  // namespace

absl::StatusOr<bool> EvaluatesItself(const RunConfig& config, const Replicas* replicas) {
  if (config.task_type == "evaluator" && config.task_id > 0) {
    return absl::InvalidArgumentError(
        StrCat("for distributed training, there can only be one evaluator task (with task id 0), "
               "given task id ",
               config.task_id));
  }
  if (replicas != nullptr) return replicas->is_chief();
  const bool alone = config.cluster.empty() ? config.task_type == "worker"
                                            : config.num_worker_replicas == 1 &&
                                                  config.num_ps_replicas == 0 && config.is_chief;
  if (!alone) {
    return absl::UnimplementedError(
        StrCat("task ", config.task_id, " of type '", config.task_type,
               "' (TF_CONFIG): this program trains in one process; unset TF_CONFIG, or give a ",
               "cluster of one chief; 'muster worker' trains with the others"));
  }
  return config.task_type != "chief";
}

absl::StatusOr<TrainAndEvaluateResult> TrainAndEvaluate(Estimator& estimator, TrainSpec train_spec,
                                                        const EvalSpec& eval_spec,
                                                        Progress& progress,
                                                        const std::atomic<bool>& stop,
                                                        const ReportEvaluation& report) {
  MUSTER_RETURN_IF_ERROR(Validate(eval_spec));
  MUSTER_ASSIGN_OR_RETURN(const bool evaluates,
                          EvaluatesItself(estimator.config(), train_spec.replicas));
  TrainAndEvaluateResult result;
  if (!evaluates) {
    MUSTER_ASSIGN_OR_RETURN(result.training, estimator.Train(train_spec, progress, stop));
    return result;
  }
  const auto listener = std::make_shared<EvaluationListener>(estimator, eval_spec, report, stop);
  train_spec.saving_listeners.push_back(listener);
  MUSTER_ASSIGN_OR_RETURN(result.training, estimator.Train(train_spec, progress, stop));
  if (!listener->result && !result.training.interrupted) {
    // Nothing was trained.
    MUSTER_RETURN_IF_ERROR(listener->BeginExporters(estimator.files(), estimator.clock()));
    MUSTER_RETURN_IF_ERROR(
        listener->Finish(estimator.files(), estimator.clock(), progress, result.training.step));
  }
  result.evaluation = listener->result;
  result.exports = listener->exports;
  return result;
}

}  // namespace muster::train
