// Variable: what a parameter server knows of one of a model's variables. Plain data, the same on
// every server and worker of a job.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/optim/optimizer.h"
#include "muster/tables/dynamic_table_spec.h"

namespace muster::ps {

// A table of a fixed size of fewer bytes is saved and loaded by the chief.
inline constexpr int64_t kLargeTableBytes = int64_t{1} << 20;
// Whether servers that have the model folder save and load a table by themselves.
constexpr bool IsSavedByServers(bool grows, int64_t elements) {
  return grows || elements * static_cast<int64_t>(sizeof(float)) >= kLargeTableBytes;
}

struct Variable {
  enum class Kind {
    kDense,  // pulled whole; its gradient is dense
    kTable,  // rows x cols, pulled by rows or keys; its gradient is a list of rows or keys
    kState,  // moving statistics: pulled whole, moved by `momentum` and by no optimizer
  };

  std::string name = {};
  Kind kind = Kind::kDense;
  int64_t rows = 0;     // 1 if it is not a table
  int64_t cols = 0;     // of a table's weights and slots; else the number of elements
  double momentum = 0;  // of a kState
  const optim::Optimizer* optimizer = nullptr;  // null for kState; must outlive users of this
  float clip = 0;  // > 0: each element of a gradient is clipped to [-clip, clip]

  // Set for a kTable that begins without rows and grows as keys appear.
  std::optional<tables::Growth> growth = std::nullopt;

  // The names in a checkpoint: of the weights, then of each slot. Empty if they have none.
  std::vector<std::string> tensors = {};

  int64_t elements() const { return rows * cols; }
  size_t slots() const { return optimizer == nullptr ? 0 : optimizer->slots().size(); }
  bool is_table() const { return kind == Kind::kTable; }
  bool grows() const { return growth.has_value(); }
  // Whether servers can save and load their rows of it by themselves.
  bool is_saved_by_servers() const {
    return is_table() && !tensors.empty() && IsSavedByServers(grows(), elements());
  }
  // Call for a table that grows.
  tables::DynamicTableSpec dynamic_table_spec() const {
    return {.name = name, .cols = cols, .optimizer = optimizer, .growth = *growth};
  }
  // The layout of one row of a pushed gradient: a table's optimizer may want squares too.
  optim::RowLayout gradient_layout() const {
    return {.cols = cols,
            .squares = is_table() && optimizer != nullptr && optimizer->wants_squares()};
  }
  int64_t gradient_cols() const { return gradient_layout().width(); }
};

using Variables = std::vector<Variable>;

}  // namespace muster::ps
