// Variables: the memory of a model's weights and optimizer slots. The trainer owns it; an engine
// only reads it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/base/random.h"
#include "muster/base/status.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/checkpoint/frozen_tensors.h"
#include "muster/engine/engine.h"
#include "muster/model/model.h"
#include "muster/tables/dynamic_table_image.h"
#include "muster/train/weights/weight_memory.h"

namespace muster::train {

// The initial weights of one variable, piece by piece in order.
class InitialWeights {
 public:
  // `index`: of the variable in its model. `spec` must outlive the object.
  InitialWeights(const engine::VariableSpec& spec, uint64_t seed, size_t index);
  void Next(std::span<float> piece);

 private:
  const engine::VariableSpec& spec_;
  RandomStream random_;
};

// The names in a checkpoint of a variable's weights and of each slot.
std::vector<std::string> GetTensorNames(const model::Model& model,
                                        const engine::VariableSpec& spec);

// One owner thread.
class Variables {
 public:
  // Allocates (weight_memory.h) and initialises: weights by their Initializer from `seed`, slots by
  // their initial value. Each variable has its own random stream, so that its values do not depend
  // on other variables. `with_slots` false: weights only and without values, which must be loaded
  // before they are used. `model` must outlive the result.
  static absl::StatusOr<std::unique_ptr<Variables>> Create(const model::Model& model, uint64_t seed,
                                                           bool with_slots);

  // As Create, with slots and without memory for the variables of which `is_elsewhere` is true:
  // other processes have their values, until AllocateRest is called. Their views have no data.
  using IsElsewhere = std::function<bool(const engine::VariableSpec& spec)>;
  static absl::StatusOr<std::unique_ptr<Variables>> CreateWithout(const IsElsewhere& is_elsewhere,
                                                                  const model::Model& model,
                                                                  uint64_t seed);
  // Allocates and initialises what CreateWithout has left out.
  absl::Status AllocateRest();
  bool is_whole() const { return elsewhere_.empty(); }

  // For a training whose weights are in another process: views() are null, and Tensors() must not
  // be called.
  static std::unique_ptr<Variables> WithoutMemory(const model::Model& model);

  // The views and specs of all variables, in the engine's order. Without slots, the view of a table
  // that grows has the rows that were loaded, in the order of the image's keys, and one of zeros.
  std::span<const engine::VariableView> views() const { return views_; }
  std::span<const engine::VariableSpec> specs() const { return specs_; }
  // Slots of one variable, in the order of its optimizer's slots(); empty for state.
  std::span<float* const> slots(int variable) const { return slots_[variable]; }
  // Slots of an optimizer that came as a function (model::Model::applies), in its updater's order.
  std::span<const std::span<char>> updater_slots() const { return updater_slots_; }
  // The updater's slots as tensors with the names "PREFIX/SLOT".
  std::vector<checkpoint::Tensor> UpdaterTensors(const std::string& prefix) const;

  // The whole state of a table that grows, as in the newest checkpoint or for the next one, unless
  // other processes have it; views() and slots() are empty for such a table. Without slots it has
  // the keys alone. Null for other
  // variables. Call CheckDynamic after images were filled from a file: DATA_LOSS if their tensors
  // do not fit each other.
  tables::DynamicTableImage* dynamic_tables(int variable) const {
    return dynamic_tables_[static_cast<size_t>(variable)].get();
  }
  absl::Status CheckDynamic() const;
  // Makes the image of a table from keys and their rows of weights: slots have their initial
  // values, no key waits for a row, and all last steps are 0. INVALID_ARGUMENT if keys and weights
  // do not fit each other, or if a key appears twice.
  absl::Status StartDynamic(int variable, std::vector<int64_t> keys,
                            std::vector<float> weights) const;

  // Call before weights or slots of a variable change: all of them, or the given rows. Without a
  // variable: call before any weights or slots may change, including those of the updater.
  void BeforeChange() const;
  void BeforeChange(int variable) const {
    if (frozen_ != nullptr) frozen_->BeforeAll(variable);
  }
  void BeforeChange(int variable, std::span<const int32_t> rows) const {
    if (frozen_ != nullptr) frozen_->BeforeRows(variable, rows);
  }
  // Sets the frozen tensors of a save in progress, which BeforeChange informs; they must live until
  // the next call. Null: none.
  void set_frozen(checkpoint::FrozenTensors* frozen) { frozen_ = frozen; }

  // All tensors to save: weights under their names, slots under
  // training/<Optimizer>/<variable>/<slot>, and slots of an optimizer that came as a function under
  // training/<Optimizer>/<slot>. The tensors point into this object's memory; those of variables
  // that are elsewhere have no bytes.
  std::vector<checkpoint::Tensor> Tensors(bool with_slots) const;
  uint64_t parameters() const;  // trained floats, without slots and moving statistics

 private:
  // The rows of a table that grows, loaded for inference.
  struct LoadedRows {
    // Allocates `rows` rows and one of zeros.
    absl::StatusOr<std::span<char>> Resize(int64_t rows);
    // The bytes of memory that are still free, at least, when the others have their values.
    uint64_t GetFreeMemory(int64_t rows) const;
    size_t floats() const {  // without the row of zeros
      return static_cast<size_t>(std::max<int64_t>(view.rows - 1, 0) * view.cols);
    }
    const std::string& name;
    engine::VariableView& view;
    const uint64_t& unwritten;  // bytes of other variables that have memory, but no values at first
    WeightMemory memory = {};
  };

  explicit Variables(const model::Model& model);
  void AddDynamic(size_t variable, bool with_slots, std::vector<checkpoint::Tensor>* tensors) const;
  bool OthersHave(size_t variable) const;
  absl::Status AddAll(bool with_slots, const IsElsewhere& is_elsewhere);
  absl::Status AllocateVariable(size_t variable, bool with_slots);
  size_t CountSlots(const engine::VariableSpec& spec) const;
  absl::Status AllocateSmall(bool with_slots, const IsElsewhere& is_elsewhere);
  absl::StatusOr<float*> Allocate(int64_t elements, const std::string& name);
  absl::Status AllocateUpdaterSlots();

  const model::Model& model_;
  uint64_t seed_ = 0;
  uint64_t unwritten_ = 0;              // bytes that were allocated and have no values yet
  std::vector<size_t> elsewhere_ = {};  // variables without memory
  std::span<const engine::VariableSpec> specs_;
  std::vector<WeightMemory> buffers_;
  std::span<float> small_ = {};  // of one of buffers_: what is left for small variables
  std::vector<engine::VariableView> views_;
  std::vector<std::vector<float*>> slots_;
  std::vector<std::span<char>> updater_slots_;
  std::vector<std::unique_ptr<tables::DynamicTableImage>> dynamic_tables_;  // by variable
  // Without slots: the rows of the tables that grow, by variable.
  std::vector<std::unique_ptr<LoadedRows>> loaded_rows_;
  checkpoint::FrozenTensors* frozen_ = nullptr;
};

}  // namespace muster::train
