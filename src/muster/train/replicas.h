// Replicas: the other replicas of one training, as a step sees them: who they are in this epoch,
// and how to come together again when one is lost.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "muster/base/status.h"
#include "muster/collective/group.h"
#include "muster/membership/view.h"
#include "muster/train/strategy.h"

namespace muster::train {

using membership::StateId;

// One epoch: its group, and which state each rank had when it began.
struct ReplicaEpoch {
  int64_t epoch = 0;
  std::unique_ptr<collective::Group> group = {};
  std::vector<StateId> states = {};  // by rank

  // The rank from which those with another state take theirs.
  int source() const;
};

// Calls block; each has a deadline of its own. One owner thread.
class Replicas : public Peers {
 public:
  absl::StatusOr<std::unique_ptr<Strategy>> NewStrategy(Session& session) override;
  // Waits for the next epoch. `state`: this replica's. `why`: how the epoch before ended, OK for
  // the first; it is over for all from now on. DEADLINE_EXCEEDED or UNAVAILABLE: there will be
  // none, and why; CANCELLED: the chief has ended training.
  virtual absl::StatusOr<ReplicaEpoch> Join(const StateId& state, const absl::Status& why) = 0;
  // The chief: training is over for all; where there is an evaluator, it first waits until that has
  // evaluated the last checkpoint. The others wait until the chief says so; ABORTED: it was lost
  // before, Join again.
  absl::Status Leave() override = 0;
};

}  // namespace muster::train
