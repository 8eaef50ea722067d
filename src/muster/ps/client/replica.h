// Replica: the protocol of one replica in a training by parameter servers. It finds a state that
// all servers have, does its batches in turn, and recovers when a server or a connection is lost.
// Its owner decides what a batch computes (train/parameter_server/ps_step.h;
// simulation_test.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/ps/client/client.h"

namespace muster::ps {

// The parts of a state besides the weights: the step, each replica's position in its data, counts.
struct Place {
  int64_t step = 0;
  std::vector<std::string> positions = {};
  Counts counts = {};
  // Of a state to load: the checkpoint from which the servers read their tables by themselves, ""
  // if these begin with their initial values. None: all weights are in the chief's memory.
  std::optional<std::string> checkpoint = std::nullopt;
};

struct ReplicaSpec {
  // The chief's weights and slots, which `give` fills and Save overwrites. Unset in other replicas.
  Memory memory = {};
  DynamicMemory dynamic_table = {};
  // Set in the chief: fills `memory` and `dynamic_table` with a state for servers that have none,
  // and returns its place. At first that is the state with which the chief was started; with
  // `again`, that of the newest checkpoint.
  std::function<absl::StatusOr<Place>(bool again)> give = {};
  std::function<void(const std::string& text)> note = {};  // for people; may be empty
};

// Errors are Client's, except that Recover, Try and WaitForOthers never return ABORTED. One owner
// thread.
class Replica {
 public:
  // `client` must outlive the replica.
  Replica(Client& client, ReplicaSpec spec) : client_(client), spec_(std::move(spec)) {}

  // Finds a state that all servers have; the chief loads one if there is none. Call it first with
  // OK, and later when a call returned ABORTED, with that status as `why`. Returns true if the
  // state is not the one that this replica had reached: continue at position().
  absl::StatusOr<bool> Recover(const absl::Status& why);

  enum class Turn {
    kDone,
    kMoved,  // another state was found: continue at position(), see Recover
    kOver,   // training is over
  };
  // Repeats `work`, which calls Pull and Push for one batch, until it is not ABORTED.
  absl::StatusOr<Turn> Try(const std::function<absl::Status()>& work);
  // Both fill in the request's generation, sequence and step. `work` must return their ABORTED.
  absl::StatusOr<Pulled> Pull(ps::Pull request, const PullInto& into);
  absl::StatusOr<Pushed> Push(ps::Push request, const Gradients& gradients);
  absl::Status Finish(int64_t left_at_end = 0, int64_t bad_records = 0) {
    return client_.Finish(
        {.generation = generation_, .left_at_end = left_at_end, .bad_records = bad_records});
  }

  enum class Ending { kOver, kContinue, kMoved };
  // Called after the last batch, or when a replica asked to stop. The chief waits for the others
  // unless they do their steps together; the others wait until the chief says that training is
  // over. If a state is lost meanwhile, more batches must be done.
  absl::StatusOr<Ending> WaitForOthers();
  // For the chief: reads the state of all servers, of one moment, into its memory. ABORTED: a
  // server was lost, and the memory has an incomplete state; the next call recovers. A Save that
  // finds another state saves that one, and the next Try or WaitForOthers returns kMoved.
  // `tables`: see Client::SaveAll.
  absl::StatusOr<Place> Save(TableSave* tables = nullptr);

  int64_t step() const { return step_; }
  // The position at which this replica's data continues; "": the beginning. Known after Recover.
  const std::string& position() const { return position_; }
  // Counts of all replicas, as the lead last sent them.
  const Counts& counts() const { return counts_; }
  // Whether a server was told to end and waits for the chief to save. Save resets it.
  bool wants_save() const { return wants_save_; }
  // The highest Counts::work() that this replica has seen, also in states that were lost.
  int64_t work() const { return work_; }

 private:
  bool is_chief() const { return client_.spec().replica == 0; }
  absl::StatusOr<bool> TryRecover();
  absl::Status LoadServers(const std::vector<State>& states);
  bool AdoptState(const State& lead);
  void UpdateCounts(const Counts& counts);
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
  bool opened_ = false, wants_save_ = false;
  bool moved_ = false;  // Save found another state, which was not reported yet
};

}  // namespace muster::ps
