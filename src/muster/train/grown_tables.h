// GrownTables: the tables of a model that grow as keys come, in a process that has them itself: one
// that trains alone, evaluates or predicts. (With parameter servers, ps/shard.h has them.)
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
#include "muster/ps/grown_table.h"
#include "muster/train/table_blocks.h"
#include "muster/train/variables.h"

namespace muster::train {

bool HasGrownTables(const model::ModelSpec& spec);

// UNIMPLEMENTED for a model that replicas cannot train by all-reduce: each would grow its own
// tables.
absl::Status CheckReducible(const model::ModelSpec& spec);

// Of number `index` of the engine's variables, which grows.
ps::Variable::Growth GrowthOf(const engine::VariableSpec& spec, uint64_t seed, size_t index);

// One owner thread. `model` and `variables` must outlive it.
class GrownTables {
 public:
  // From the images that `variables` have, with slots; they grow with Apply.
  static absl::StatusOr<std::unique_ptr<GrownTables>> ForTraining(const model::Model& model,
                                                                  const Variables& variables,
                                                                  uint64_t seed);
  // Reads the images themselves. A key without a row is a row of zeros.
  static absl::StatusOr<std::unique_ptr<GrownTables>> ForInference(const model::Model& model,
                                                                   const Variables& variables);

  // What the engine is given for `batch`; valid until the next call. Views of other variables are
  // those of `variables`.
  absl::StatusOr<const features::FeatureBatch*> Take(const features::FeatureBatch& batch);
  std::span<const engine::VariableView> views() const { return views_; }

  // Training: gradients of rows of the block of the last Take; `step` is that of the update.
  void Apply(int variable, std::span<const int32_t> rows, std::span<const float> gradient,
             int64_t step);
  // Training: the images of `variables` become what there is now.
  void TakeImages();

 private:
  GrownTables(const model::Model& model, const Variables& variables, TableBlocks blocks,
              uint64_t seed);
  void ReadImage(int variable, float* block) const;

  const Variables& variables_;
  TableBlocks blocks_;
  // By variable; of those that grow.
  std::vector<ps::Variable> specs_;
  std::vector<std::unique_ptr<ps::GrownTable>> tables_;             // training
  std::vector<absl::flat_hash_map<int64_t, size_t>> rows_of_keys_;  // inference
  std::vector<math::AlignedBuffer> memory_;
  std::vector<engine::VariableView> views_;
  std::vector<int64_t> touched_;
};

}  // namespace muster::train
