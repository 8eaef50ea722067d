// DynamicTableSpec: describes a variable whose table grows. It is plain data, the same in every
// process that holds keys of the variable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "muster/optim/optimizer.h"

namespace muster::tables {

// How rows are added to a table and removed (dynamic_table.h).
struct Growth {
  int64_t admit_after = 1;   // a key gets a row when this many steps have named it
  int64_t expire_after = 0;  // a key that no step names for this many steps is removed; 0: never
  int64_t capacity = 0;      // rows of the variable, in all its tables together; 0: any number
  // Initial rows are truncated normal numbers of the stream of (seed, variable, key).
  uint64_t seed = 0;
  uint32_t variable = 0;
  double stddev = 0;  // 0: initial rows are zeros
};

struct DynamicTableSpec {
  std::string name = {};
  int64_t cols = 0;                             // of a row's weights, and of each of its slots
  const optim::Optimizer* optimizer = nullptr;  // must outlive users of this
  Growth growth = {};

  size_t slots() const { return optimizer->slots().size(); }
  // The layout of one row of a gradient: the optimizer may want squares too.
  optim::RowLayout gradient_layout() const {
    return {.cols = cols, .squares = optimizer->wants_squares()};
  }
};

}  // namespace muster::tables
