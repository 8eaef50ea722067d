// TrainLoop: the steps of one training, with the hooks around them (train/hook.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "muster/base/status.h"
#include "muster/train/apply_sink.h"
#include "muster/train/clip_sink.h"
#include "muster/train/estimator.h"
#include "muster/train/hook.h"
#include "muster/train/input.h"
#include "muster/train/mean.h"
#include "muster/train/progress.h"
#include "muster/train/strategy.h"
#include "muster/train/update.h"

namespace muster::train {

using HookList = std::vector<std::shared_ptr<Hook>>;

// The hooks of a training in the Estimator's order: CheckpointSaver, the model's
// training_chief_hooks, StepCounter, SummarySaver, the user's, StopAtStep, NanTensor, the model's
// training_hooks. (LoggingTensor's place is taken by Progress.)
// Of a replica that is not the chief only those that decide, StopAtStep, NanTensor and the model's
// training_hooks, and the user's.
HookList TrainHooks(const TrainSpec& spec, const RunConfig& config, const EstimatorSpec& custom);

// Runs one Estimator::Train. One owner thread.
class TrainLoop {
 public:
  // `session` stands at its first step; it and `spec` must outlive the loop.
  TrainLoop(Session& session, const TrainSpec& spec, HookList hooks);

  absl::StatusOr<TrainResult> Run(const std::atomic<bool>& stop);

 private:
  absl::Status RunSteps(const std::atomic<bool>& stop);
  absl::Status Open();
  absl::Status FindPosition();
  void SharePositions();
  absl::Status OpenData();
  absl::StatusOr<std::unique_ptr<BatchSource>> OpenParts();
  absl::Status OpenGrown();
  absl::StatusOr<const InputBatch*> NextBatch();
  // False: there is no further batch, or a hook asked to stop before it.
  absl::StatusOr<bool> RunStep(const std::atomic<bool>& stop);
  absl::StatusOr<StepValues> Step(const InputBatch& batch);
  // The same with all replicas. None: training is over.
  absl::StatusOr<std::optional<StepValues>> StepTogether(const std::atomic<bool>& stop);
  // False: there is more to do.
  absl::StatusOr<bool> WaitForOthers();
  absl::Status GoOnElsewhere();
  void CountSteps();
  engine::GradientSink& FirstSink();
  // What is to be known before a step, and done behind the last of its gradients.
  absl::Status BeginUpdate();
  absl::Status FinishUpdate();
  void Report(const StepValues& values);
  void ReportReplicas();
  absl::Status Finish();

  Session& session_;
  const TrainSpec& spec_;
  const HookList hooks_;
  UpdateSink sink_;
  std::optional<ClipSink> clip_;
  std::optional<ApplySink> apply_;  // where the optimizer is a function; nothing is clipped then
  std::unique_ptr<GrownTables> grown_;  // of a process that trains alone, where tables grow
  std::unique_ptr<BatchSource> input_;
  std::unique_ptr<Strategy> together_;  // null: this one trains alone
  bool has_positions_ = false;
  uint64_t bad_records_ = 0;
  ProgressState state_;
  Mean report_loss_, epoch_loss_;
  int64_t loss_epoch_ = -1;
};

}  // namespace muster::train
