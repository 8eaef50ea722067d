// TrainingWatch: an evaluator's view of the training whose checkpoints it reads.
#pragma once

#include "muster/base/status.h"

namespace muster::train {

// One owner thread.
class TrainingWatch {
 public:
  virtual ~TrainingWatch() = default;
  // Waits at most `seconds`. Returns true when the last checkpoint is written. CANCELLED: training,
  // or this process, was stopped before the end. Any other error says why training has failed, or
  // that its chief has been away for too long.
  virtual absl::StatusOr<bool> AwaitEnd(double seconds) = 0;
  // Called when the last checkpoint is evaluated: the chief, which waits for this, may then end.
  virtual absl::Status Leave() = 0;
};

}  // namespace muster::train
