// Variable: what a parameter server knows of one of a model's variables. Plain data, the same on
// every server and worker of a job.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/optim/optimizer.h"

namespace muster::ps {

struct Variable {
  enum class Kind {
    kDense,  // pulled whole; its gradient is dense
    kTable,  // rows x cols, pulled by rows, or by keys; its gradient is a list of them
    kState,  // moving statistics: pulled whole, moved by `momentum` and by no optimizer
  };

  std::string name = {};
  Kind kind = Kind::kDense;
  int64_t rows = 0;                             // 1 for what is no table
  int64_t cols = 0;                             // of a table's weights and slots
  double momentum = 0;                          // kState
  const optim::Optimizer* optimizer = nullptr;  // not of kState; must outlive what it is given to
  float clip = 0;  // > 0: each element of a gradient to [-clip, clip] before it is applied

  // A kTable of no rows at first, which grows as keys come (grown_table.h).
  struct Growth {
    int64_t admit_after = 1;   // steps that name a key before it has a row, the last one included
    int64_t expire_after = 0;  // steps without the key after which its row goes; 0: never
    int64_t capacity = 0;      // rows on all servers together; 0: any number
    // Initial rows: truncated normal numbers of the stream of (seed, variable, key).
    uint64_t seed = 0;
    uint32_t variable = 0;
    double stddev = 0;  // 0: zeros
  };
  std::optional<Growth> growth = std::nullopt;

  int64_t elements() const { return rows * cols; }
  size_t slots() const { return optimizer == nullptr ? 0 : optimizer->slots().size(); }
  bool is_table() const { return kind == Kind::kTable; }
  bool grows() const { return growth.has_value(); }
  // Of a row of its gradient, as it is pushed: a table's optimizer may want squares too.
  optim::RowLayout gradient_layout() const {
    return {.cols = cols,
            .squares = is_table() && optimizer != nullptr && optimizer->wants_squares()};
  }
  int64_t gradient_cols() const { return gradient_layout().width(); }
};

using Variables = std::vector<Variable>;

}  // namespace muster::ps
