// Variables: the memory of a model's weights and optimizer slots, which the trainer owns (an engine
// only reads them).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/checkpoint/frozen_tensors.h"
#include "muster/engine/engine.h"
#include "muster/model/model.h"
#include "muster/ps/grown_image.h"

namespace muster::train {

// One owner thread.
class Variables {
 public:
  // Allocates (64-byte aligned) and initialises: weights by their Initializer from `seed` (a stream
  // a variable, so that one variable's values do not depend on the others), slots by their value.
  // `with_slots` false: weights only, for evaluation. `model` must outlive this.
  static absl::StatusOr<std::unique_ptr<Variables>> Create(const model::Model& model, uint64_t seed,
                                                           bool with_slots);

  // For a training whose weights are elsewhere: views() are null, Tensors() must not be asked for.
  static std::unique_ptr<Variables> WithoutMemory(const model::Model& model);

  // In the order of the engine's variables.
  std::span<const engine::VariableView> views() const { return views_; }
  std::span<const engine::VariableSpec> specs() const { return specs_; }
  // Slots of one variable, in the order of its optimizer's slots(); empty for state.
  std::span<float* const> slots(int variable) const { return slots_[variable]; }
  // Slots of an optimizer that is a function (model::Model::applies), in its updater's order.
  std::span<const std::span<char>> updater_slots() const { return updater_slots_; }
  // The same as they are named in a bundle: "PREFIX/SLOT".
  std::vector<checkpoint::Tensor> UpdaterTensors(const std::string& prefix) const;

  // Of a table that grows, whose view and slots are empty here: all of it, as the newest checkpoint
  // has it or the next one will. Null for others. With CheckGrown after it was filled from a file:
  // DATA_LOSS for tensors that do not fit each other.
  ps::GrownImage* grown(int variable) const { return grown_[static_cast<size_t>(variable)].get(); }
  absl::Status CheckGrown() const;
  // Makes it of keys and their rows: initial slots, nobody waits, and steps count from 0.
  // INVALID_ARGUMENT for keys and weights that do not fit each other, or keys that come twice.
  absl::Status StartGrown(int variable, std::vector<int64_t> keys,
                          std::vector<float> weights) const;

  // To be called before weights or slots of a variable change: all of them, or these rows. Without
  // a variable: before any may change, those of the updater too.
  void BeforeChange() const;
  void BeforeChange(int variable) const {
    if (frozen_ != nullptr) frozen_->BeforeAll(variable);
  }
  void BeforeChange(int variable, std::span<const int32_t> rows) const {
    if (frozen_ != nullptr) frozen_->BeforeRows(variable, rows);
  }
  // Whom BeforeChange tells (a save at work); must live until the next call. Null: nobody.
  void set_frozen(checkpoint::FrozenTensors* frozen) { frozen_ = frozen; }

  // Everything to save: weights under their names, slots under
  // training/<Optimizer>/<variable>/<slot>, those of a function under training/<Optimizer>/<slot>.
  // Points into this object's memory.
  std::vector<checkpoint::Tensor> Tensors(bool with_slots) const;
  uint64_t parameters() const;  // trained floats, without slots and statistics

 private:
  struct AlignedDelete {
    void operator()(float* p) const;
  };
  using Buffer = std::unique_ptr<float[], AlignedDelete>;

  explicit Variables(const model::Model& model);
  void AddGrown(size_t variable, bool with_slots, std::vector<checkpoint::Tensor>* tensors) const;
  absl::StatusOr<float*> Allocate(int64_t elements, const std::string& name);
  absl::Status AllocateUpdaterSlots();

  const model::Model& model_;
  std::span<const engine::VariableSpec> specs_;
  std::vector<Buffer> buffers_;
  std::vector<engine::VariableView> views_;
  std::vector<std::vector<float*>> slots_;
  std::vector<std::span<char>> updater_slots_;
  std::vector<std::unique_ptr<ps::GrownImage>> grown_;  // by variable
  checkpoint::FrozenTensors* frozen_ = nullptr;
};

}  // namespace muster::train
