// FeatureBatch: the input of an engine. Dense columns as floats, categorical columns as ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "muster/formats/bundle.h"

namespace muster::features {

// The ids of one categorical column: either one per row (`offsets` is empty), or a list for each
// row (row r has [offsets[r], offsets[r+1]), in the order of the row's values). -1: the value has
// no id. The ids index the rows of the table or block that the engine is given: in one process the
// whole table, with parameter servers the rows that the batch touches.
struct IdList {
  std::vector<int32_t> ids = {};
  std::vector<uint32_t> offsets = {};
  std::vector<float> weights = {};  // one for each id, finite; empty: all are 1
  // For a keys column: the key of each value. `ids` are then 0, or -1 for a value without a key,
  // until the owner of the table replaces them by the keys' rows.
  std::vector<int64_t> keys = {};
  // For an exported model: the shape of the ids' tensor, including its first size, which may differ
  // from the batch's rows.
  std::vector<int64_t> shape = {};

  bool one_per_row() const { return offsets.empty(); }
  size_t begin(int row) const {
    return one_per_row() ? static_cast<size_t>(row) : offsets[static_cast<size_t>(row)];
  }
  size_t end(int row) const { return begin(row + 1); }
  float weight(size_t i) const { return weights.empty() ? 1 : weights[i]; }
};

// The values are rows x width, row-major.
struct DenseColumn {
  int width = 1;
  std::vector<float> values;
};

// A column as an exported model takes it: numbers of any type, or strings, of any shape.
struct RawColumn {
  formats::DataType type = formats::DataType::kFloat;
  std::vector<int64_t> shape = {};    // the shape of a row
  std::vector<std::byte> bytes = {};  // rows x shape, row-major, little-endian
  // strings only: where each one begins in `bytes`, and the end
  std::vector<uint64_t> offsets = {};
};

struct FeatureBatch {
  int rows = 0;
  std::vector<DenseColumn> dense;  // in the order of FeatureTransform's dense requests
  std::vector<IdList> id_lists;    // in the order of its categorical requests
  std::vector<float> labels;       // rows x LabelSpec::width; empty if not requested
  std::vector<float> weights;      // one per row; empty: all are 1
  // For an exported model, which reads only this and id_lists: its inputs in its order, then its
  // labels and its sample weights, if the batch has them.
  std::vector<RawColumn> raw = {};
};

}  // namespace muster::features
