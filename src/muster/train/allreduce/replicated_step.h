// ReplicatedStep: one step of a training that several replicas do together (synchronous data
// parallelism by all-reduce).
//
// Each replica computes on its own batch. Gradients are summed over all rows and divided by the
// number of all rows, so that N replicas with batches of B do what one does with batches of N * B.
// Every replica applies the same sums to the same weights: no replica owns them. A replica whose
// data has ended adds nothing; training ends when the data of all replicas has ended, or when one
// of them is asked to stop.
//
// A replica divides by the number of all rows before it knows it: by what all replicas have said,
// with the step before, of their next batches. The real numbers travel with the gradients. Where
// they are others, and where a replica asks to stop, no replica uses the sums.
//
// A step is done when a replica has the sum of all gradients. When a replica is lost, the others
// join a new generation. Replicas take over the state of the most advanced one (states differ by
// one step at most), and a step that was not done is repeated on the same batches. Random numbers
// depend on seed, step and rank alone: the result is the same to the bit.
//
// If the number of replicas may change (session.data.shards), the next generation may have other
// replicas. The shards of the data are then divided anew; every state has the position of each
// shard.
#pragma once

#include <optional>
#include <thread>

#include "muster/base/status.h"
#include "muster/train/allreduce/proposal.h"
#include "muster/train/allreduce/reduce_sink.h"
#include "muster/train/allreduce/replicas.h"
#include "muster/train/loop/step_update.h"
#include "muster/train/loop/strategy.h"

namespace muster::train {

// One owner thread. `session` and `replicas` must outlive the step.
class ReplicatedStep : public Strategy {
 public:
  static absl::StatusOr<std::unique_ptr<ReplicatedStep>> Create(Session& session,
                                                                Replicas& replicas);

  // A replica without a state takes one over from a replica that has it: at the start all replicas
  // except the chief, which has the checkpoint's state or a new one.
  absl::Status Open() override;
  absl::StatusOr<Result> Run(const InputBatch* batch, Stop stop) override;
  absl::StatusOr<Ending> WaitForOthers() override;
  bool can_save() const override { return misses_others_; }
  void Fail(const absl::Status& why) override;
  void DataOpened(const BatchSource& input) override { input_ = &input; }

  int rank() const override { return generation_.group->rank(); }
  int size() const override { return generation_.group->size(); }
  std::vector<std::string> changes() const override { return changes_; }
  const ReplicaRates* rates() const override { return &rates_; }
  int64_t generation() const { return generation_.generation; }

 private:
  ReplicatedStep(Session& session, Replicas& replicas)
      : session_(session),
        replicas_(replicas),
        update_(session),
        sink_(session.model.engine->variables(), session.model.engine->metric_sizes()) {}

  absl::StatusOr<Result> RunUntilDone(const InputBatch* batch, Stop stop);
  absl::StatusOr<Result> TryRun(const InputBatch* batch, Stop stop);
  Proposal Propose(const InputBatch* batch, Stop stop) const;
  absl::StatusOr<Proposal> Agree(const Proposal& mine);
  // The result over all replicas, and the sum of their proposals.
  struct Summed {
    engine::StepResult step;
    Proposal all;
  };
  // Computes the gradients of the batch and sums them over the replicas, whose proposals and
  // positions it writes into proposals_ and positions_.
  absl::StatusOr<Summed> Compute(const InputBatch* batch, Proposal mine);
  absl::Status TakeProposals();
  absl::StatusOr<Proposal> SumUp() const;
  absl::StatusOr<Result> End(const Proposal& all);
  void StopWork();
  void Measure();
  // Returns true if the state was replaced, or if this replica must read other shards of the data.
  absl::StatusOr<bool> Join(StateId state, absl::Status why);
  StateId state() const { return {.step = session_.step, .generation = state_generation_}; }
  absl::Status AdoptNewestState(bool* overwritten);
  absl::Status Stopped(const absl::Status& why) const;
  absl::Status GatherPositions();
  void NoteTakeOver();
  void NoteContinuing();
  void NoteChanges(const std::vector<std::string>& before, const absl::Status& why);
  std::string PositionAfter(const InputBatch* batch) const;

  Session& session_;
  Replicas& replicas_;
  StepUpdate update_;
  ReduceSink sink_;  // gives update_ the sums
  ReplicaGeneration generation_;
  features::FeatureBatch no_rows_;
  std::vector<Proposal> proposals_;     // of the last exchange, by rank
  std::vector<std::string> positions_;  // after the step, by rank
  int32_t expected_rows_ = 0;           // of all replicas in the next step; 0: not known
  const BatchSource* input_ = nullptr;
  bool received_ = false;  // the complete state of another replica was received in this generation
  bool whole_ = true;      // the session has a complete state
  bool misses_others_ = false;  // Join waited in vain, with a complete state of this training
  int64_t state_generation_ =
      0;  // the last generation in which all replicas had this replica's state
  std::vector<std::string> changes_;
  // Sums may begin during a step: there are at least two cores, and the first step has shown that
  // the engine does not use the group.
  bool overlap_ = false;
  const unsigned cores_ = std::thread::hardware_concurrency();  // that this process may use
  ReplicaRates rates_;
  std::vector<ReplicaWork> work_;
  int64_t worked_nanos_ = 0;  // since the last step, before working_since_
  int64_t working_since_ = 0;
};

}  // namespace muster::train
