// ServedStep: one step of a replica whose training's weights parameter servers have (ps/).
//
// It pulls the dense variables and those rows of tables that its batch touches, gives them to the
// engine as blocks, and pushes the gradients. Synchronous: the servers sum those of all replicas,
// in the order of ranks, divided by the number of all rows, and apply the sum once: the same as
// replicated_step.h does. Asynchronous: each replica divides by its own rows, its gradients are
// applied as they come, and whoever has no data left waits for the others.
// With backup replicas each divides by its own rows too, and the servers take the mean by rows of
// those that make a step; a batch that comes too late for its step is dropped.
//
// The servers know where each replica stands in its data, so that a replica that is started again
// goes on there, and the others do not notice but for the time. When a server is lost, the chief
// gives all of them the newest checkpoint, and every replica goes back to its position there.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/math/aligned_buffer.h"
#include "muster/ps/replica.h"
#include "muster/train/clip_sink.h"
#include "muster/train/strategy.h"
#include "muster/train/table_blocks.h"

namespace muster::train {

struct ServedOptions {
  ps::ClientSpec client = {};
  std::function<void(const std::string& text)> note = {};  // for people; may be empty
};

// The gradients of one step, kept until they are pushed.
class KeepSink : public engine::GradientSink {
 public:
  // `variables` must outlive it.
  explicit KeepSink(std::span<const ps::Variable> variables)
      : variables_(variables), kept_(variables.size()) {}
  // Statistics count by `share`.
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

// One owner thread. `session` must outlive it.
class ServedStep : public Strategy {
 public:
  static absl::StatusOr<std::unique_ptr<ServedStep>> Create(Session& session, ServedOptions options,
                                                            const net::Token& key);
  ~ServedStep() override { session_.fetch_state = {}; }
  ServedStep(const ServedStep&) = delete;
  ServedStep& operator=(const ServedStep&) = delete;

  // The chief gives servers that have no state its own, or finds theirs.
  absl::Status Open() override;
  // Nothing comes to `next`.
  absl::StatusOr<Result> Run(const InputBatch* batch, Stop stop,
                             engine::GradientSink& next) override;
  absl::StatusOr<Ending> WaitForOthers() override;
  // Who replaces this one goes on for it.
  void Fail(const absl::Status&) override {}
  int rank() const override { return spec_.client.replica; }
  int size() const override { return spec_.client.replicas; }
  int64_t TakeExamples() override;
  int steps_a_batch() const override { return synchronous() ? 1 : size(); }

 private:
  ServedStep(Session& session, ServedOptions options, TableBlocks blocks, ps::Variables variables);

  bool is_chief() const { return spec_.client.replica == 0; }
  bool synchronous() const { return spec_.client.synchronous; }
  // Each batch of one is a step of all, and all know before it how many rows it has.
  bool in_lock_step() const { return synchronous() && !spec_.client.has_backups(); }
  absl::StatusOr<Result> TryRun(const InputBatch* batch, Stop stop);
  // The rows that the batch, which may be null, names.
  absl::Status TakeBlocks(const InputBatch* batch);
  Result EndBy(uint32_t stop);
  absl::StatusOr<ps::Pulled> PullFor(uint32_t rows, Stop stop);
  absl::StatusOr<engine::StepResult> Compute(const InputBatch& batch, const ps::Pulled& pulled);
  absl::StatusOr<ps::Pushed> PushOf(const InputBatch* batch, const engine::StepResult& step);
  StepValues ValuesOf(const InputBatch* batch, const engine::StepResult& step,
                      const ps::Pulled& pulled, const ps::Pushed& pushed);
  void Begin();
  void TakePlace();
  void TakeCounts();
  void Move();
  absl::Status RestoreCheckpoint();
  absl::Status FetchState();
  ps::Memory MemoryOf() const;

  Session& session_;
  const ServedOptions spec_;
  const ps::Variables variables_;
  std::unique_ptr<ps::Client> client_;
  std::unique_ptr<ps::Replica> replica_;
  TableBlocks blocks_;
  KeepSink sink_;
  std::unique_ptr<ClipSink> clip_;           // asynchronous
  std::vector<math::AlignedBuffer> memory_;  // of each variable, or of a table's block
  std::vector<engine::VariableView> views_;
  int64_t left_at_end_ = 0;  // this replica's, of the step that is done
  int64_t examples_ = -1;    // ps::Counts::work of the last result; -1: not opened
};

}  // namespace muster::train
