// StepUpdate: the sinks that a step's gradients go through in a process that applies them itself:
// clipping, then the optimizer.
#pragma once

#include <optional>

#include "muster/base/status.h"
#include "muster/train/loop/hook.h"
#include "muster/train/weights/apply_sink.h"
#include "muster/train/weights/clip_sink.h"
#include "muster/train/weights/dynamic_tables.h"
#include "muster/train/weights/update.h"

namespace muster::train {

// One owner thread. `session` must outlive the update.
class StepUpdate {
 public:
  explicit StepUpdate(const Session& session);
  StepUpdate(const StepUpdate&) = delete;
  StepUpdate& operator=(const StepUpdate&) = delete;

  // See UpdateSink::set_dynamic_tables.
  void set_dynamic_tables(DynamicTables* dynamic_tables) {
    update_.set_dynamic_tables(dynamic_tables);
  }

  // Called before the gradients of the step after session.step arrive. Sets the learning rate if
  // the model computes it itself.
  absl::Status Begin();
  // The sink for the gradients.
  engine::GradientSink& sink();
  // Called after the last gradient, also if there was none. All weights are then those after the
  // step.
  absl::Status Finish();

 private:
  const Session& session_;
  UpdateSink update_;
  std::optional<ClipSink> clip_;
  std::optional<ApplySink> apply_;  // if the optimizer is a function; nothing is clipped then
};

}  // namespace muster::train
