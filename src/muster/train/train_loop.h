// TrainLoop: the steps between two checkpoints and what happens around them.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/formats/event.h"
#include "muster/model/model.h"
#include "muster/train/estimator.h"
#include "muster/train/input.h"
#include "muster/train/progress.h"
#include "muster/train/run_config.h"
#include "muster/train/update.h"
#include "muster/train/variables.h"

namespace muster::train {

// The name under which a checkpoint carries the data position.
constexpr const char* kPositionName = "muster/position";

// Runs one Estimator::Train. One owner thread.
class TrainLoop {
 public:
  TrainLoop(io::FileSystem& files, const Clock& clock, const RunConfig& config,
            const model::Model& model, Variables& variables);

  // Fills weights, slots, step and position from the newest checkpoint, if there is one.
  absl::Status Restore();

  absl::StatusOr<TrainResult> Run(const TrainSpec& spec, Progress& progress,
                                  const std::atomic<bool>& stop);

 private:
  absl::Status Step(const InputBatch& batch);
  absl::Status AfterStep(const InputBatch& batch);
  absl::Status Save();
  absl::Status WriteSummary();

  io::FileSystem& files_;
  const Clock& clock_;
  const RunConfig& config_;
  const model::Model& model_;
  Variables& variables_;
  UpdateSink sink_;
  checkpoint::Saver saver_;
  formats::EventWriter events_;

  int64_t step_ = 0;
  int64_t saved_step_ = -1;
  std::string prefix_;  // of the newest checkpoint
  int64_t last_save_nanos_ = 0;
  std::optional<data::Position> position_;
  ProgressState state_;

  struct Mean {
    double sum = 0;
    double rows = 0;
    void Add(double mean, double n) {
      sum += mean * n;
      rows += n;
    }
    double value() const { return rows > 0 ? sum / rows : 0; }
  };
  Mean report_loss_, summary_loss_, epoch_loss_;
  int64_t loss_epoch_ = -1;
  int64_t summary_step_ = 0;
  int64_t summary_nanos_ = 0;
};

}  // namespace muster::train
