// The tensors of a table that grows in a checkpoint (docs/formats/checkpoint.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace muster::tables {

// One of them: a value or some values of each key that has a row, or of each key that waits for
// one.
struct DynamicTableColumn {
  enum class Kind {
    kValues,  // float: the weights or a slot of a row
    kKeys,
    kLastSteps,
    kWaitingKeys,
    kWaitingCounts,
    kWaitingLastSteps,
  };
  Kind kind = Kind::kValues;
  std::string name = {};  // in the checkpoint
  int slot = -1;          // of kValues; -1: the weights
  int64_t cols = 0;       // of kValues: floats of a key; 0: a key has one int64

  bool is_of_waiting() const { return kind >= Kind::kWaitingKeys; }
  uint64_t bytes_of_key() const {
    return cols == 0 ? sizeof(int64_t) : static_cast<uint64_t>(cols) * sizeof(float);
  }
};

// The columns in the order of a checkpoint: the weights, the keys, and what only training needs.
// `tensors` are the names of the weights and of each slot; `cols` is the width of a row.
std::vector<DynamicTableColumn> GetDynamicTableColumns(std::span<const std::string> tensors,
                                                       int64_t cols);
// Only those that evaluation and prediction need.
std::vector<DynamicTableColumn> GetColumnsForInference(const std::string& weights, int64_t cols);

}  // namespace muster::tables
