// DynamicTables: the tables of a model that grow as keys appear, in a process that holds the tables
// itself: one that trains alone, evaluates or predicts. (On parameter servers
// ps/server/server_weights.h holds them.)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "muster/base/status.h"
#include "muster/engine/engine.h"
#include "muster/math/aligned_buffer.h"
#include "muster/model/model.h"
#include "muster/tables/dynamic_table.h"
#include "muster/train/weights/table_blocks.h"
#include "muster/train/weights/variables.h"

namespace muster::train {

// Whether a model of `spec` has tables that grow.
bool HasDynamicTables(const model::ModelSpec& spec);

// UNIMPLEMENTED for a model with tables that grow: replicas cannot train it by all-reduce, since
// each would grow its own tables.
absl::Status CheckReducible(const model::ModelSpec& spec);

// The growth of `spec`, a table that grows; `index` is its number among the engine's variables.
tables::Growth GetGrowth(const engine::VariableSpec& spec, uint64_t seed, size_t index);

// KeyIndex: the row of each key in the images of tables that grow, for reading them. Immutable,
// thread-safe.
class KeyIndex {
 public:
  // The images in `variables` must not change while the index is used.
  explicit KeyIndex(const Variables& variables);

  // The row of `key` in the image of the variable, a table that grows; -1 if it has none.
  int64_t Find(int variable, int64_t key) const {
    const auto& rows = rows_[static_cast<size_t>(variable)];
    const auto found = rows.find(key);
    return found == rows.end() ? -1 : found->second;
  }

 private:
  std::vector<absl::flat_hash_map<int64_t, int64_t>> rows_;  // by variable
};

// One owner thread. `variables` and the engine and optimizers of `model` must outlive the tables.
class DynamicTables {
 public:
  // Makes tables with slots from the images in `variables`; Apply lets the tables grow.
  static absl::StatusOr<std::unique_ptr<DynamicTables>> ForTraining(const model::Model& model,
                                                                    const Variables& variables,
                                                                    uint64_t seed);
  // Reads rows from `variables`, which have no slots, directly. A key without a row reads as zeros.
  // Several objects may read the same `variables` at once, each for a model of its own, but all of
  // the same spec; `index` is made of these variables.
  static absl::StatusOr<std::unique_ptr<DynamicTables>> ForInference(
      const model::Model& model, const Variables& variables, std::shared_ptr<const KeyIndex> index);

  // Returns `batch` with the ids of these tables renumbered into blocks of the rows that it
  // touches; valid until the next call.
  absl::StatusOr<const features::FeatureBatch*> Renumber(const features::FeatureBatch& batch);
  // The views for the engine: those blocks, and the views of `variables` for all other variables.
  std::span<const engine::VariableView> views() const { return views_; }

  // Training: applies gradients; `rows` are those of the block of the last Renumber; `step` is the
  // global step before the update.
  void Apply(int variable, std::span<const int32_t> rows, std::span<const float> gradient,
             int64_t step);
  // Training: replaces the images in `variables` by the present state of the tables.
  void CopyImages();

 private:
  DynamicTables(const model::Model& model, const Variables& variables, TableBlocks blocks,
                uint64_t seed);
  void ReadImage(int variable, float* block) const;

  const Variables& variables_;
  TableBlocks blocks_;
  // By variable; set for tables that grow.
  std::vector<tables::DynamicTableSpec> specs_;
  std::vector<std::unique_ptr<tables::DynamicTable>> tables_;  // training
  std::shared_ptr<const KeyIndex> index_;                      // inference
  std::vector<math::AlignedBuffer> memory_;
  std::vector<engine::VariableView> views_;
  std::vector<int64_t> touched_;
};

}  // namespace muster::train
