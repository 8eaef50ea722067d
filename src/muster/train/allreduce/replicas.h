// Replicas: the replicas that train together in a generation. When one of them is lost, Join forms
// the next generation.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "muster/base/status.h"
#include "muster/collective/group.h"
#include "muster/membership/view.h"
#include "muster/train/loop/strategy.h"

namespace muster::train {

using membership::StateId;

// How a state moves to the ranks that lack it.
struct StateTransfer {
  std::vector<int> donors = {};     // that have it and send it; at least one, and at most 4
  std::vector<int> receivers = {};  // all that lack it
};

// One generation: its group, and the state that each rank had when the generation began.
struct ReplicaGeneration {
  int64_t generation = 0;
  std::unique_ptr<collective::Group> group = {};
  std::vector<StateId> states = {};  // by rank
  // To how many of its neighbours this replica has kept the connection of an earlier generation,
  // and to how many it has made one.
  int kept = 0, made = 0;

  // The rank from which replicas with another state take over its state.
  int source() const;
  // Of the state of source(), which is the first donor.
  StateTransfer GetTransfer() const;
};

// All calls block, each with its own deadline. One owner thread.
class Replicas : public Peers {
 public:
  absl::StatusOr<std::unique_ptr<Strategy>> NewStrategy(Session& session) override;
  // Waits for the next generation. `state` is this replica's state. `why` says how the previous
  // generation ended, OK for the first; the previous generation is now over for all replicas.
  // DEADLINE_EXCEEDED or UNAVAILABLE say why there will be no next generation; CANCELLED: the chief
  // has ended training.
  virtual absl::StatusOr<ReplicaGeneration> Join(const StateId& state, const absl::Status& why) = 0;
  // Called by the chief: ends training for all; if there is an evaluator, first waits until it has
  // evaluated the last checkpoint. Called by another replica: waits until the chief has ended
  // training; ABORTED: the chief was lost before that, Join again.
  absl::Status Leave() override = 0;
};

}  // namespace muster::train
