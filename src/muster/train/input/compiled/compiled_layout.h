// What the rows of one compiled file have: their layout, which its file keeps as JSON.
// docs/formats/compiled_features.md describes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/features/batch.h"
#include "muster/features/column.h"
#include "muster/features/transform.h"
#include "muster/formats/json_fields.h"

namespace muster::train {

// What every row of one compiled file has, in this order.
struct CompiledLayout {
  struct Ids {
    bool is_list = false;      // any number of ids, else exactly one
    bool has_weights = false;  // each id has a weight
    bool has_keys = false;     // each id has a key (IdList::keys)
    int64_t ids = 1;           // ids are in [-1, ids)
    friend bool operator==(const Ids&, const Ids&) = default;

    int bytes() const;  // of an id
  };

  int label_width = 0;  // floats; 0: rows have no label
  bool has_weight = false;
  std::vector<int> dense = {};  // floats of each dense column
  std::vector<Ids> id_lists = {};
  friend bool operator==(const CompiledLayout&, const CompiledLayout&) = default;

  size_t dense_width() const;
  // The bytes of what does not vary in length, which comes first in a row.
  size_t fixed_bytes() const;
  bool has_lists() const;
};

// How the ids of a categorical column lie in a row.
struct CompiledPart {
  size_t list;    // in FeatureBatch::id_lists
  size_t width;   // bytes of an id
  uint32_t mask;  // of as many
  uint32_t most;  // the largest number that stands for an id
  bool has_weights, has_keys;

  size_t bytes() const {  // of an id with its weight and key
    return width + (has_weights ? sizeof(float) : 0) + (has_keys ? sizeof(int64_t) : 0);
  }
  bool is_plain() const { return !has_weights && !has_keys; }
};

// Returns the columns with lists of ids, or those with one id per row, in the order of a row.
std::vector<CompiledPart> FindParts(const CompiledLayout& layout, bool lists);

// Returns the layout of the batches that `request` gives of `spec`. `batch` is one of them.
CompiledLayout MakeLayout(const features::FeatureSpec& spec,
                          const features::FeatureRequest& request, bool with_labels,
                          const features::FeatureBatch& batch);

formats::Json PrintLayout(const CompiledLayout& layout);
// INVALID_ARGUMENT, with `where`, for a layout that PrintLayout cannot have made.
absl::StatusOr<CompiledLayout> ReadLayout(const formats::Json& json, const std::string& where);

}  // namespace muster::train
