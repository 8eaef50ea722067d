// PsStep: one step of a replica in a training whose weights are on parameter servers (ps/).
//
// It pulls the dense variables and the table rows that its batch touches, gives them to the engine
// as blocks, and pushes the gradients. Synchronous: the servers sum the gradients of all replicas,
// in the order of ranks, divided by the number of all rows, and apply the sum once, as
// replicated_step.h does. Asynchronous: each replica divides by its own rows, the servers apply its
// gradients when they arrive, and a replica that has no data left waits for the others. With backup
// replicas each replica divides by its own rows too, and the servers apply the mean, weighted by
// rows, of the gradients that make a step; a batch that arrives too late for its step is dropped.
//
// The servers know each replica's position in its data. A restarted replica continues there; the
// others notice only a delay. When a server is lost, the chief loads the newest checkpoint
// into all of them, and every replica goes back to its position there.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/math/aligned_buffer.h"
#include "muster/ps/client/replica.h"
#include "muster/train/loop/strategy.h"
#include "muster/train/weights/clip_sink.h"
#include "muster/train/weights/table_blocks.h"

namespace muster::train {

// The gradients of one step, kept until they are pushed.
class KeepSink : public engine::GradientSink {
 public:
  // `variables` must outlive the sink.
  explicit KeepSink(std::span<const ps::Variable> variables)
      : variables_(variables), kept_(variables.size()) {}
  // Begins a step; its moving statistics are multiplied by `share`.
  void Begin(double share);
  void Dense(int variable, std::span<const float> gradient) override;
  void Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) override;
  bool WantsSquares(int variable) const override {
    return variables_[static_cast<size_t>(variable)].gradient_layout().squares;
  }
  void Statistic(int variable, std::span<const float> value) override;

  struct Kept {
    std::vector<int32_t> rows = {};
    std::vector<float> values = {};
  };
  const Kept& kept(int variable) const { return kept_[static_cast<size_t>(variable)]; }

 private:
  const std::span<const ps::Variable> variables_;
  double share_ = 1;
  std::vector<Kept> kept_;
};

// One owner thread. `session` must outlive the step.
class PsStep : public Strategy {
 public:
  static absl::StatusOr<std::unique_ptr<PsStep>> Create(Session& session, ps::ClientSpec spec,
                                                        const net::Token& key);
  PsStep(const PsStep&) = delete;
  PsStep& operator=(const PsStep&) = delete;

  // The chief loads its own state into servers that have none. All replicas then start from the
  // state on the servers.
  absl::Status Open() override;
  absl::StatusOr<Result> Run(const InputBatch* batch, Stop stop) override;
  absl::StatusOr<Ending> WaitForOthers() override;
  // Informs nobody: this replica's replacement continues in its place.
  void Fail(const absl::Status&) override {}
  // True for the chief, which saves.
  bool must_fetch_state() const override { return is_chief(); }
  absl::Status FetchState() override;
  int rank() const override { return spec_.replica; }
  int size() const override { return spec_.training.replicas; }
  int64_t ConsumeExamples() override;
  int steps_per_batch() const override { return synchronous() ? 1 : size(); }

 private:
  PsStep(Session& session, ps::ClientSpec spec, TableBlocks blocks, ps::Variables variables);

  bool is_chief() const { return spec_.replica == 0; }
  int64_t bad_records() const { return static_cast<int64_t>(session_.data.bad_records); }
  bool synchronous() const { return spec_.training.synchronous; }
  // Whether all replicas do each step together, and know before it how many rows it has.
  bool in_lock_step() const { return synchronous() && !spec_.training.has_backups(); }
  absl::StatusOr<Result> TryRun(const InputBatch* batch, Stop stop);
  // Sets blocks_ to the rows that the batch names; `batch` may be null.
  absl::Status PullBlocks(const InputBatch* batch);
  Result EndBy(uint32_t stop);
  absl::StatusOr<ps::Pulled> PullFor(uint32_t rows, Stop stop);
  absl::StatusOr<engine::StepResult> Compute(const InputBatch& batch, const ps::Pulled& pulled);
  absl::StatusOr<ps::Pushed> MakePush(const InputBatch* batch, const engine::StepResult& step);
  StepValues GetValues(const InputBatch* batch, const engine::StepResult& step,
                       const ps::Pulled& pulled, const ps::Pushed& pushed);
  void Begin();
  void UpdatePlace();
  void UpdateCounts();
  void Move();
  absl::Status RestoreCheckpoint();
  absl::StatusOr<ps::Place> GiveState(bool again);
  // Finds out whether all servers have the model folder. If not, the chief keeps the whole model.
  absl::Status LookForServersInFolder();
  absl::StatusOr<checkpoint::RowFiles> GetRowFiles(const ps::TableSave& tables) const;
  ps::Memory GetMemory() const;

  Session& session_;
  const ps::ClientSpec spec_;
  const ps::Variables variables_;
  std::unique_ptr<ps::Client> client_;
  std::unique_ptr<ps::Replica> replica_;
  TableBlocks blocks_;
  KeepSink sink_;
  std::unique_ptr<ClipSink> clip_;           // asynchronous only
  std::vector<math::AlignedBuffer> memory_;  // of each variable; for a table, of its block
  std::vector<engine::VariableView> views_;
  int64_t left_at_end_ = 0;    // session.data.dropped_at_end of this replica when Run was called
  bool servers_save_ = false;  // their tables, into the model folder
  bool has_warned_ = false;    // of a server that cannot do that
  int64_t table_saves_ = 0;    // that this chief has asked for
  int64_t examples_ = -1;      // ps::Counts::work at the last result; -1: not known yet
};

}  // namespace muster::train
