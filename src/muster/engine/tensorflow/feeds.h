// The arguments of an exported model's functions, in the memory shared with its host.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/engine.h"
#include "muster/engine/tensorflow/host/message.h"
#include "muster/engine/tensorflow/host/shared_segment.h"
#include "muster/engine/tensorflow/keras_export.h"
#include "muster/engine/tensorflow/table_block.h"
#include "muster/features/batch.h"
#include "muster/io/file_system.h"

namespace muster::engine::tensorflow {

// One owner thread. `model` and `segment` outlive it.
class Feeds {
 public:
  Feeds(const KerasExport& model, host::SharedSegment& segment);

  // Reserves memory for everything of fixed size, and writes the values that never change.
  absl::Status Begin(io::FileSystem& files);

  // `variables` has the export's index of the variable for each of `weights`. Other variables are
  // not fed.
  void SetWeights(std::span<const int> variables, std::span<const VariableView> weights);
  void SetSeeds(const StepContext& context);
  void SetDenominator(double denominator);
  // Writes the columns; if the model has no column of sample weights but its step takes weights,
  // also FeatureBatch::weights. With `ids`, which are renumbered into blocks of their tables, also
  // writes the ids of all lookups and the blocks. INVALID_ARGUMENT for ids outside their tables.
  absl::Status SetBatch(const features::FeatureBatch& batch,
                        const std::vector<features::IdList>* ids);

  // Writes the states of all metrics, in the export's order; each has its number of floats.
  absl::Status SetMetricStates(std::span<const std::vector<float>> states);
  // Writes the tables that the signature reads whole. FAILED_PRECONDITION if only some rows of one
  // are available.
  absl::Status SetWholeTables(const KerasSignature& signature);
  // Writes the bytes of one image.
  absl::Status SetBytes(std::span<const std::byte> bytes);

  // INVALID_ARGUMENT if an id of the lookup is not in [0, bound), for a batch of `rows` rows.
  absl::Status CheckLookupIds(size_t lookup, const features::IdList& ids, int64_t bound,
                              int rows) const;

  // Returns the places of a signature's arguments.
  std::span<const host::TensorPlace> Of(const KerasSignature& signature);

  TableBlock& block(int variable) { return tables_[static_cast<size_t>(variable)].block; }

 private:
  struct Table {
    VariableView view;
    std::vector<float> frozen;  // the values of a table that never changes
    TableBlock block;
  };
  absl::Status ReadConstant(io::FileSystem& files);
  absl::Status FindRows(const features::FeatureBatch& batch,
                        const std::vector<features::IdList>& ids);
  absl::StatusOr<host::TensorPlace> PlaceOfIds(size_t lookup, const features::IdList& ids) const;

  const KerasExport& model_;
  host::SharedSegment& segment_;
  host::SharedBlock batch_block_;
  // columns_ are in the order of FeatureBatch::raw, with the weights last.
  std::vector<host::TensorPlace> variables_, columns_, ids_;
  host::TensorPlace denominator_;
  host::SharedBlock other_block_;  // for states and images
  host::SharedBlock whole_block_;
  std::vector<host::TensorPlace> whole_;  // by variable
  std::vector<host::TensorPlace> states_;
  host::TensorPlace bytes_;
  std::vector<Table> tables_;     // by variable
  std::vector<size_t> first_id_;  // by lookup: where its ids begin in its table's block
  std::vector<host::TensorPlace> feeds_;
};

}  // namespace muster::engine::tensorflow
