// TrainLoop: the steps of one training, with the hooks around them (train/loop/hook.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "muster/base/status.h"
#include "muster/train/input/input.h"
#include "muster/train/loop/hook.h"
#include "muster/train/loop/mean.h"
#include "muster/train/loop/progress.h"
#include "muster/train/loop/specs.h"
#include "muster/train/loop/strategy.h"
#include "muster/train/loop/training_metrics.h"

namespace muster::train {

// Runs one Estimator::Train. One owner thread.
class TrainLoop {
 public:
  // `session` is at its first step; it and `spec` must outlive the loop.
  TrainLoop(Session& session, const TrainSpec& spec, std::vector<std::shared_ptr<Hook>> hooks);
  ~TrainLoop() {
    session_.state_source = nullptr;
    session_.metrics = nullptr;
  }
  TrainLoop(const TrainLoop&) = delete;
  TrainLoop& operator=(const TrainLoop&) = delete;

  absl::StatusOr<TrainResult> Run(const std::atomic<bool>& stop);

 private:
  absl::Status RunSteps(const std::atomic<bool>& stop);
  // Returns the error `why` with which the training ends, and says whether the last step is saved.
  absl::Status Fail(const absl::Status& why);
  // Calls the hooks' Begin and makes the strategy.
  absl::Status Begin();
  absl::Status Open();
  absl::Status FindPosition();
  void SharePositions();
  absl::Status OpenData();
  absl::StatusOr<std::unique_ptr<BatchSource>> OpenShards();
  // The input to open. Until a warning was given, it is watched for columns that find no ids or are
  // unscaled.
  InputSpec WatchedInput() const {
    InputSpec input = spec_.input;
    input.watch_data = !warned_of_data_;
    input.first_segment = first_segment_;
    return input;
  }
  // Warns of data files that were changed after the checkpoint from which training continues.
  absl::Status WarnOfChangedData();
  // The next batch; null at the end of the data, or if `stop` or a hook ended the wait for one.
  // With replicas it may be none yet: they wait together.
  absl::StatusOr<const InputBatch*> NextBatch(const std::atomic<bool>& stop);
  // What is done again and again while all wait for records.
  absl::Status WhileWaiting();
  // Returns the batch for which the input has waited; null as NextBatch.
  absl::StatusOr<const InputBatch*> WaitForBatch(const std::atomic<bool>& stop);
  // Returns false if there is no further batch, or if a hook asked to stop before one.
  absl::StatusOr<bool> RunStep(const std::atomic<bool>& stop);
  // Returns nothing when training is over.
  absl::StatusOr<std::optional<StepValues>> Step(const std::atomic<bool>& stop);
  // Returns false if more steps must be done.
  absl::StatusOr<bool> WaitForOthers();
  bool IsLeaving() const { return spec_.replicas != nullptr && spec_.replicas->is_leaving(); }
  // Opens the data again and tells the hooks, after the replicas have changed.
  absl::Status ContinueInNewView();
  void CountSteps();
  // Calls the hooks' EndEpoch if `batch` is the first of another epoch.
  absl::Status EndEpochBefore(const InputBatch& batch);
  absl::Status Report(const StepValues& values);
  void ReportReplicas();
  absl::Status Finish();

  Session& session_;
  const TrainSpec& spec_;
  const std::vector<std::shared_ptr<Hook>> hooks_;
  std::unique_ptr<BatchSource> input_;
  std::unique_ptr<Strategy> strategy_;  // Begin makes it
  bool warned_of_data_ = false;
  ProgressState state_;
  Mean report_loss_;
  TrainingMetrics metrics_;
  int64_t first_segment_ = 0;  // InputSpec::first_segment
  bool told_of_wait_ = false;  // the present one: nothing changes in it
  int64_t input_epoch_ = -1;  // of the last batch trained on, also by an earlier run; -1: not known
};

}  // namespace muster::train
