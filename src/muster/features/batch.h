// FeatureBatch: what an engine eats. Dense columns as floats, categorical columns as ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "muster/formats/bundle.h"

namespace muster::features {

// Ids of one categorical column. Either one slot a row (offsets empty) or lists (ids of row r are
// [offsets[r], offsets[r+1]), in the order of the row's values); -1: the value has no id. They
// index the rows of whatever block of a table the engine is given: locally the whole table, from a
// parameter server the touched rows.
struct IdList {
  std::vector<int32_t> ids = {};
  std::vector<uint32_t> offsets = {};
  std::vector<float> weights = {};  // of each id, finite; empty: all 1
  // Of a keys column: the key of each value, and `ids` are 0, or -1 where there is none, until who
  // has the table gives each key its row.
  std::vector<int64_t> keys = {};
  // Of an exported model: the shape of the tensor that the ids are, its first size included, which
  // need not be the batch's rows.
  std::vector<int64_t> shape = {};

  bool one_per_row() const { return offsets.empty(); }
  size_t begin(int row) const {
    return one_per_row() ? static_cast<size_t>(row) : offsets[static_cast<size_t>(row)];
  }
  size_t end(int row) const { return begin(row + 1); }
  float weight(size_t i) const { return weights.empty() ? 1 : weights[i]; }
};

// rows x width, row-major.
struct DenseColumn {
  int width = 1;
  std::vector<float> values;
};

// A column as an exported model is fed: numbers of any type, or strings, of any shape.
struct RawColumn {
  formats::DataType type = formats::DataType::kFloat;
  std::vector<int64_t> shape = {};     // of a row
  std::vector<std::byte> bytes = {};   // rows x shape, row-major, little-endian
  std::vector<uint64_t> offsets = {};  // strings only: where each begins in `bytes`, and the end
};

struct FeatureBatch {
  int rows = 0;
  std::vector<DenseColumn> dense;  // in the order of FeatureTransform's dense requests
  std::vector<IdList> id_lists;    // in the order of its categorical requests
  std::vector<float> labels;       // rows x LabelSpec::width; empty when they were not asked for
  std::vector<float> weights;      // rows; empty: all 1
  // For an exported model, which reads its id_lists and these alone: its inputs in its order, then
  // its labels and its sample weights, where the batch has them.
  std::vector<RawColumn> raw = {};
};

}  // namespace muster::features
