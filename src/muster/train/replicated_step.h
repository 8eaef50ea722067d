// ReplicatedStep: one step of a training that several replicas do together (synchronous data
// parallelism by all-reduce).
//
// Each replica computes on a batch of its own; gradients are sums over all rows, divided by the
// number of all rows, so that N replicas with batches of B do what one does with batches of N * B.
// Every replica applies the same sums to the same weights: nobody owns them. A replica whose data
// has ended adds nothing; training ends when that is so for all, or when one is asked to stop.
//
// A step is done when a replica has the reduced gradient of all. When a replica is lost, the others
// come together again in a new epoch; whoever is behind the furthest takes its state (they differ
// by one step at most), and the step that was not done is done again on the same batches. Random
// numbers depend on seed, step and rank alone: the end is the same to the bit.
//
// Where the replicas may become fewer or more (session.parts), the next epoch may be one of others.
// The parts of the data are then dealt anew, each at the position that travels with every state.
#pragma once

#include <optional>
#include <thread>

#include "muster/base/status.h"
#include "muster/train/reduce_sink.h"
#include "muster/train/replicas.h"
#include "muster/train/strategy.h"

namespace muster::train {

// One owner thread. `session` and `replicas` must outlive it.
class ReplicatedStep : public Strategy {
 public:
  static absl::StatusOr<std::unique_ptr<ReplicatedStep>> Create(Session& session,
                                                                Replicas& replicas);

  // A replica without a checkpoint's state, which all but the chief are at the start, takes it
  // over.
  absl::Status Open() override;
  absl::StatusOr<Result> Run(const InputBatch* batch, Stop stop,
                             engine::GradientSink& next) override;
  absl::StatusOr<Ending> WaitForOthers() override;
  void Fail(const absl::Status& why) override;

  int rank() const override { return epoch_.group->rank(); }
  int size() const override { return epoch_.group->size(); }
  std::vector<std::string> changes() const override { return changes_; }
  const ReplicaRates* rates() const override { return &rates_; }
  int64_t epoch() const { return epoch_.epoch; }

 private:
  // What the replicas say to each other before a step.
  struct Wish {
    int32_t rows = 0;
    Stop stop = Stop::kNo;
    float seconds = 0;    // that it worked since the wish before
    int32_t dropped = 0;  // records before the batch (InputBatch::dropped)
    int32_t dropped_at_end = 0;
  };

  ReplicatedStep(Session& session, Replicas& replicas)
      : session_(session), replicas_(replicas), sink_(session.model.engine->variables()) {}

  absl::StatusOr<Result> TryRun(const InputBatch* batch, Stop stop, engine::GradientSink& next);
  absl::StatusOr<Wish> Agree(const InputBatch* batch, Stop stop);
  absl::Status CheckWishes(std::span<const Wish> wishes) const;
  void Measure(std::span<const Wish> wishes);
  float TakeWorked();
  // True: the state was replaced, or this replica is to read other parts of the data.
  absl::StatusOr<bool> Join(StateId state, absl::Status why);
  StateId state() const { return {.step = session_.step, .epoch = state_epoch_}; }
  absl::Status TakeOver(bool* overwritten);
  absl::Status TakePositions();
  void NoteChanges(const std::vector<std::string>& before, const absl::Status& why);
  std::string PositionAfter(const InputBatch* batch) const;

  Session& session_;
  Replicas& replicas_;
  ReduceSink sink_;
  ReplicaEpoch epoch_;
  features::FeatureBatch no_rows_;
  std::vector<std::string> positions_;
  bool received_ = false;    // another's state, whole
  int64_t state_epoch_ = 0;  // of its state: the last in which all had the same
  std::vector<std::string> changes_;
  // Sums may begin in the midst of a step: there are two cores at least, and the first step has
  // shown that the engine needs the group for nothing else.
  bool overlap_ = false;
  const unsigned cores_ = std::thread::hardware_concurrency();  // that this process may use
  ReplicaRates rates_;
  std::vector<ReplicaWork> work_;  // of the step in hand, by rank; its seconds come with the next
  int64_t worked_nanos_ = 0;       // since the last wish, before working_since_
  int64_t working_since_ = 0;
};

}  // namespace muster::train
