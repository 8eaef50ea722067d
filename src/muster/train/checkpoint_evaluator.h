// CheckpointEvaluator: evaluates the checkpoints of a model folder as they appear, and lets
// exporters export them. It runs in the process that trains, or in a separate one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/train/estimator.h"
#include "muster/train/loop/specs.h"

namespace muster::train {

// The result of a training with evaluations.
struct TrainAndEvaluateResult {
  TrainResult training = {};
  std::optional<EvalResult> evaluation = {};  // the last one; none if there was none
  std::vector<std::string> exports = {};      // folders made by the last evaluation
};

// Called after each evaluation with its result and the folders of its exports. Called again with
// the same result if the end of the training adds exports to the last evaluation.
using ReportEvaluation =
    std::function<void(const EvalResult& result, const std::vector<std::string>& exports)>;

// One owner thread. The constructor's arguments must outlive the evaluator.
class CheckpointEvaluator {
 public:
  CheckpointEvaluator(Estimator& estimator, const EvalSpec& spec, const ReportEvaluation& report)
      : estimator_(estimator), spec_(spec), report_(report) {}

  // Begins a run: start_delay_secs count from here. Exports are written to `files`, which may be
  // fenced; it must outlive all calls until the next Begin.
  absl::Status Begin(io::FileSystem& files);
  // Whether start_delay_secs and throttle_secs have passed, so that an evaluation is due.
  bool IsTime() const;
  // Evaluates the estimator's checkpoint, whose step is `step`, unless it was the last one
  // evaluated, and exports it. Its exports and, if it is the best checkpoint of the folder, the
  // record that says so (checkpoint/best.h) are written before its events.
  // `training` becomes EvalResult::training and trained_records.
  absl::Status Evaluate(int64_t step, bool is_final, Progress& progress,
                        TrainingSoFar training = {});
  // Evaluates the last checkpoint, unless that was done already, and makes the final exports.
  absl::Status Finish(int64_t step, Progress& progress, TrainingSoFar training = {});

  const std::optional<int64_t>& last_step() const { return last_step_; }
  // The result and the exports of the last evaluation.
  const std::optional<EvalResult>& result() const { return result_; }
  const std::vector<std::string>& exports() const { return exports_; }

 private:
  ExportContext Context();
  // Reads the best value of earlier runs, if it is of the same metric and its checkpoint exists.
  absl::Status ReadBest();
  absl::Status KeepIfBest(const EvalResult& result);
  // Calls the exporters that have not exported the last evaluation yet.
  absl::Status Export(const EvalResult& result, bool is_final, std::vector<std::string>* made);
  bool Exported(const Exporter& exporter) const;

  Estimator& estimator_;
  const EvalSpec& spec_;
  const ReportEvaluation& report_;
  io::FileSystem* files_ = nullptr;
  int64_t start_nanos_ = 0;
  int64_t last_nanos_ = 0;
  std::optional<int64_t> last_step_;
  std::optional<EvalResult> result_;
  std::vector<std::string> exports_;
  std::optional<double> best_;
};

}  // namespace muster::train
