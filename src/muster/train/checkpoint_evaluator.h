// CheckpointEvaluator: evaluates checkpoints of a model folder as they come and exports what its
// exporters want of them; whether in the process that trains or in one of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/train/estimator.h"
#include "muster/train/specs.h"

namespace muster::train {

// Called after each evaluation with its result and the folders of its exports; and again, with the
// same result, when the end of the training adds exports to the last one.
using ReportEvaluation =
    std::function<void(const EvalResult& result, const std::vector<std::string>& exports)>;

// One owner thread. What it is made of must outlive it.
class CheckpointEvaluator {
 public:
  CheckpointEvaluator(Estimator& estimator, const EvalSpec& spec, const ReportEvaluation& report)
      : estimator_(estimator), spec_(spec), report_(report) {}

  // The run begins: start_delay_secs count from here. `files`, where exports are kept, may be
  // fenced; it must outlive the calls until the next Begin.
  absl::Status Begin(io::FileSystem& files);
  // Whether start_delay_secs and throttle_secs have passed.
  bool IsTime() const;
  // Evaluates the estimator's checkpoint, which is that of `step`, unless that was the last one
  // evaluated; its exports are there before its events are.
  absl::Status Evaluate(int64_t step, bool is_final, Progress& progress);
  // The last checkpoint: evaluates it, unless that was done, and makes the final exports.
  absl::Status Finish(int64_t step, Progress& progress);

  const std::optional<int64_t>& last_step() const { return last_step_; }
  const std::optional<EvalResult>& result() const { return result_; }   // the last
  const std::vector<std::string>& exports() const { return exports_; }  // of the last

 private:
  ExportContext Context();
  // Of what the last evaluation has not exported yet.
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
};

}  // namespace muster::train
