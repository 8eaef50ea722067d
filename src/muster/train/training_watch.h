// TrainingWatch: what an evaluator hears of the training whose checkpoints it reads.
#pragma once

#include "muster/base/status.h"

namespace muster::train {

// One owner thread.
class TrainingWatch {
 public:
  virtual ~TrainingWatch() = default;
  // Waits so long at most. True: the last checkpoint is written. CANCELLED: training was stopped
  // before its end, or this process was; any other error: training has failed or its chief has been
  // away for too long, and why.
  virtual absl::StatusOr<bool> AwaitEnd(double seconds) = 0;
  // The last checkpoint is evaluated: the chief, who waits for that, may go.
  virtual absl::Status Leave() = 0;
};

}  // namespace muster::train
