// Replica: how one of those that train goes through a training by parameter servers: finds a state
// that all servers have, does its batches in turn, and finds its way back whenever a server, or its
// own connection, is lost. The protocol alone: what a batch computes is its owner's
// (train/served_step.h; simulation_test.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/ps/client.h"

namespace muster::ps {

// What belongs to the weights of a state: the step, and where each replica stands in its data.
struct Place {
  int64_t step = 0;
  std::vector<std::string> positions = {};
  Counts counts = {};
};

struct ReplicaSpec {
  // The chief's weights and slots, which `give` fills and Save overwrites; of the others none.
  Memory memory = {};
  GrownMemory grown = {};
  // The chief's, for servers without a state: what it was started with, `again` the newest
  // checkpoint.
  std::function<absl::StatusOr<Place>(bool again)> give = {};
  std::function<void(const std::string& text)> note = {};  // for people; may be empty
};

// Errors are as Client's, but that Recover, Try, WaitForOthers and Save know no ABORTED. One owner
// thread.
class Replica {
 public:
  // `client` must outlive it.
  Replica(Client& client, ReplicaSpec spec) : client_(client), spec_(std::move(spec)) {}

  // At first, and when a call was ABORTED, which is `why`: finds or, the chief, makes a state that
  // all servers have. True: it is not the one that this replica was at; go on at position().
  absl::StatusOr<bool> Recover(const absl::Status& why);

  enum class Turn {
    kDone,
    kMoved,  // to another place: see Recover
    kOver,   // training is over
  };
  // Does `work`, which calls those below for one batch, until it is not ABORTED.
  absl::StatusOr<Turn> Try(const std::function<absl::Status()>& work);
  // Requests without generation, sequence and, synchronous, step; ABORTED is for Try.
  absl::StatusOr<Pulled> Pull(ps::Pull request, const PullInto& into);
  absl::StatusOr<Pushed> Push(ps::Push request, const Gradients& gradients);
  absl::Status Finish(int64_t left_at_end = 0) {
    return client_.Finish({.generation = generation_, .left_at_end = left_at_end});
  }

  enum class Ending { kOver, kGoOn, kMoved };
  // Behind the last batch, or where somebody wants to stop: the chief waits for the others where
  // they do not do their steps together, the others for its word that all is over. A state that is
  // lost means more to do.
  absl::StatusOr<Ending> WaitForOthers();
  // The chief: all servers' state of one moment into its memory. UNAVAILABLE: what is there now is
  // the half of one; start this task again.
  absl::StatusOr<Place> Save();

  int64_t step() const { return step_; }
  // Where its data goes on; "": at the beginning. Known after Recover.
  const std::string& position() const { return position_; }
  // Of all replicas, as the lead said last.
  const Counts& counts() const { return counts_; }
  // The most that it has heard of, also in states that were lost.
  int64_t work() const { return work_; }

 private:
  bool is_chief() const { return client_.spec().replica == 0; }
  absl::StatusOr<bool> TryRecover();
  absl::Status LoadServers(const std::vector<State>& states);
  bool TakeState(const State& lead);
  void TakeCounts(const Counts& counts);
  void Note(const std::string& text) const {
    if (spec_.note) spec_.note(text);
  }

  Client& client_;
  const ReplicaSpec spec_;
  int64_t generation_ = 0;
  int64_t sequence_ = 0;  // of the next batch
  int64_t step_ = 0;
  std::string position_;
  Counts counts_;
  int64_t work_ = 0;
  bool opened_ = false;
};

}  // namespace muster::ps
