// Strategy: how the steps of a training are done. There are three strategies: one process trains
// alone (local_strategy.h), replicas that each have all weights use all-reduce (replicated_step.h),
// or replicas use parameter servers, which hold the weights (ps_step.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/train/input/batch_source.h"
#include "muster/train/loop/hook.h"
#include "muster/train/loop/replica_rates.h"

namespace muster::train {

// Whether this task alone was told to end: see ClusterRoleOptions (cluster_role.h).
inline bool IsLeaving(const std::atomic<bool>* stop, const std::atomic<bool>* leaving) {
  return stop != nullptr && leaving != nullptr && *leaving && *stop;
}
inline constexpr char kLeftBeforeEvaluation[] =
    "stopped while the evaluator was at the last checkpoint; the training is complete and saved";

// The strategy of one training. One owner thread.
class Strategy : public StateSource {
 public:
  // Joins the other replicas, if any, for the first time. The session's step and position, and the
  // weights if the replica has them, are then the same on all replicas. CANCELLED: training is
  // over.
  virtual absl::Status Open() = 0;
  // Called when the loop has opened `input`, at the session's position.
  virtual void DataOpened(const BatchSource& /*input*/) {}
  // Whether a stop request or a signal ends the loop before it reads another batch. If not, Run
  // informs the other replicas with the next batch, so that all end after the same step.
  virtual bool stops_at_once() const { return false; }

  enum class Outcome {
    kDone,       // session.step counts it
    kNotFinite,  // the loss is not finite, on every replica; nothing was applied
    kMoved,      // the state was replaced: read from session.data.positions; the batch is not used
    kWaited,     // all replicas wait for records; read again, there may be a further segment
    kOver,       // no data is left, or a hook of some replica asked to stop
    kInterrupted,  // a signal that is meant for all replicas asked to stop
  };
  enum class Stop : int32_t { kNo, kRequested, kInterrupted };
  struct Result {
    Outcome outcome = Outcome::kOver;
    // The values of all replicas if they do the step together. `rows` always counts the rows that
    // all replicas have trained on since the last result.
    StepValues values = {};
  };
  // A null `batch` means that this replica's data has ended. Returns only when the step is done,
  // even if tasks are lost meanwhile; errors end the training. Writes step, positions and records
  // of the session, and previous_step if the steps of other replicas count too.
  virtual absl::StatusOr<Result> Run(const InputBatch* batch, Stop stop) = 0;

  enum class Ending { kOver, kContinue, kMoved };
  // Called after the last step. Before the chief saves and exports the result, it waits for the
  // replicas that are still training; the others wait for the chief. If a state is lost before
  // that, more steps must be done: from session.data.positions if kMoved.
  virtual absl::StatusOr<Ending> WaitForOthers() = 0;

  // After an error: whether the session is nevertheless as after its last step, so that it can be
  // saved.
  virtual bool can_save() const { return false; }
  // Informs the other replicas, if possible, that this one ends with an error.
  virtual void Fail(const absl::Status& why) = 0;

  // Whether a save by this process needs FetchState. The result does not change after Open.
  virtual bool must_fetch_state() const { return false; }
  absl::Status FetchState() override { return absl::OkStatus(); }

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // How many steps are done while each replica trains on one batch: 1 if they do steps together.
  virtual int steps_per_batch() const { return 1; }
  // Rows that the others have trained on since the last result, while this replica waited.
  virtual int64_t ConsumeExamples() { return 0; }
  // Which replicas left or joined, in words.
  virtual std::vector<std::string> changes() const { return {}; }
  // The rate of each replica if they do steps together; null: not known.
  virtual const ReplicaRates* rates() const { return nullptr; }
};

// The replicas that train together, as one of them sees them. It may outlive several attempts of a
// training.
class Peers {
 public:
  virtual ~Peers() = default;
  // Whether this replica is the chief, which writes checkpoints, events and exports.
  virtual bool is_chief() const = 0;
  // Whether a separate task evaluates the checkpoints; the chief then does not.
  virtual bool has_evaluator() const { return false; }
  // Whether this replica alone was told to end, while the training continues: the replica saves the
  // state that only it has, and ends without telling the others that training is over.
  virtual bool is_leaving() const { return false; }
  // Whether each replica keeps all weights and slots, or the chief alone.
  virtual bool all_have_weights() const { return true; }
  // Whether parameter servers can keep, save and load the variable without the chief, which then
  // needs no memory for it.
  virtual bool IsKeptByServers(const engine::VariableSpec&) const { return false; }
  // `session` and this object must outlive the result.
  virtual absl::StatusOr<std::unique_ptr<Strategy>> NewStrategy(Session& session) = 0;
  // Called by the chief: tells all replicas that training is over.
  virtual absl::Status Leave() = 0;
  // Called by the chief in place of Leave if training was stopped before its end. A replica that
  // arrives later must not take that for the end.
  virtual absl::Status LeaveStopped() { return Leave(); }
};

// FAILED_PRECONDITION if the data of session.data.positions is divided among a different number of
// replicas or, if session.data.shards is set, into a different number of shards.
absl::Status CheckReplicas(const Session& session, int replicas);

}  // namespace muster::train
