// LocalStrategy: the steps of a process that trains alone. It gives each batch to the engine, and
// the engine's gradients to the optimizer.
#pragma once

#include <memory>

#include "muster/base/status.h"
#include "muster/train/loop/step_update.h"
#include "muster/train/loop/strategy.h"
#include "muster/train/weights/dynamic_tables.h"

namespace muster::train {

// One owner thread. `session` must outlive the strategy.
class LocalStrategy : public Strategy {
 public:
  explicit LocalStrategy(Session& session) : session_(session), update_(session) {}

  // Copies the tables that grow from session.variables. FetchState copies them back.
  absl::Status Open() override;
  void DataOpened(const BatchSource& input) override;
  bool stops_at_once() const override { return true; }
  // Trains on every batch that was read, whatever `stop` says. Records the step in session.trace.
  absl::StatusOr<Result> Run(const InputBatch* batch, Stop stop) override;
  absl::StatusOr<Ending> WaitForOthers() override { return Ending::kOver; }
  void Fail(const absl::Status&) override {}
  bool must_fetch_state() const override { return dynamic_tables_ != nullptr; }
  absl::Status FetchState() override;
  int rank() const override { return 0; }
  int size() const override { return 1; }

 private:
  absl::StatusOr<engine::StepResult> Compute(const features::FeatureBatch& batch);

  Session& session_;
  StepUpdate update_;
  std::unique_ptr<DynamicTables> dynamic_tables_;  // null if no table grows
  bool has_positions_ = false;                     // whether the batches of the data have positions
};

}  // namespace muster::train
