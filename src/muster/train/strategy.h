// Strategy: how the replicas of a training do its steps together. Two members: by all-reduce, where
// each has all weights (replicated_step.h), and by parameter servers, who have them
// (served_step.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/train/batch_source.h"
#include "muster/train/hook.h"
#include "muster/train/replica_rates.h"

namespace muster::train {

// Of one training. One owner thread.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // Comes together with the others for the first time. Session's step and position are then those
  // of all, and so are the weights where the replica has them. CANCELLED: training is over.
  virtual absl::Status Open() = 0;

  enum class Outcome {
    kDone,         // session.step counts it
    kNotFinite,    // so does everybody find the loss; nothing was applied
    kMoved,        // another state was taken: read on at session.positions, the batch is not used
    kOver,         // no data is left, or a hook of one wants to stop
    kInterrupted,  // the same by a signal
  };
  enum class Stop : int32_t { kNo, kRequested, kInterrupted };
  struct Result {
    Outcome outcome = Outcome::kOver;
    // Of all replicas together, where they do the step together; `rows` are in any case those that
    // all have trained since the last one.
    StepValues values = {};
  };
  // `batch` null: this replica's data has ended. Comes back only when the step is done, whoever is
  // lost in between; errors end the training. `next` takes the gradients of all where this replica
  // applies them.
  virtual absl::StatusOr<Result> Run(const InputBatch* batch, Stop stop,
                                     engine::GradientSink& next) = 0;

  enum class Ending { kOver, kGoOn, kMoved };
  // Behind the last step. The chief waits for whom it must, before it saves and exports what all
  // have trained; the others wait for the chief. Where a state was lost before that, there is more
  // to do: at session.positions if kMoved.
  virtual absl::StatusOr<Ending> WaitForOthers() = 0;

  // Tells the others, where it can, that this replica ends with an error of its own.
  virtual void Fail(const absl::Status& why) = 0;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // How many steps pass while each replica trains on one batch: 1 where they do them together.
  virtual int steps_a_batch() const { return 1; }
  // What the others have trained since the last result that says it, while this one waited.
  virtual int64_t TakeExamples() { return 0; }
  // Who left or came, in words.
  virtual std::vector<std::string> changes() const { return {}; }
  // Of each replica, where they do the steps together; null: not known.
  virtual const ReplicaRates* rates() const { return nullptr; }
};

// Those that train together, as one of them sees them. It may outlive several trainings' attempts.
class Peers {
 public:
  virtual ~Peers() = default;
  // One of them: it writes checkpoints, events and exports.
  virtual bool is_chief() const = 0;
  // A task of its own evaluates the checkpoints; the chief leaves that to it.
  virtual bool has_evaluator() const { return false; }
  // Whether each replica keeps all weights and slots, or the chief alone.
  virtual bool all_have_weights() const { return true; }
  // `session` and this must outlive it.
  virtual absl::StatusOr<std::unique_ptr<Strategy>> NewStrategy(Session& session) = 0;
  // The chief: training is over for all.
  virtual absl::Status Leave() = 0;
};

// FAILED_PRECONDITION where the data of session.positions is dealt to another number of replicas,
// or, where session.parts says so, into another number of parts.
absl::Status CheckReplicas(const Session& session, int replicas);

}  // namespace muster::train
