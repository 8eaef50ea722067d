// Variable: what a parameter server knows of one of a model's variables. Plain data, the same on
// every server and worker of a job.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/optim/optimizer.h"

namespace muster::ps {

struct Variable {
  enum class Kind {
    kDense,  // pulled whole; its gradient is dense
    kTable,  // rows x cols, pulled by rows; its gradient is a list of rows
    kState,  // moving statistics: pulled whole, moved by `momentum` and by no optimizer
  };

  std::string name = {};
  Kind kind = Kind::kDense;
  int64_t rows = 0;  // 1 for what is no table
  int64_t cols = 0;
  double momentum = 0;                          // kState
  const optim::Optimizer* optimizer = nullptr;  // not of kState; must outlive what it is given to
  float clip = 0;  // > 0: each element of a gradient to [-clip, clip] before it is applied

  int64_t elements() const { return rows * cols; }
  size_t slots() const { return optimizer == nullptr ? 0 : optimizer->slots().size(); }
  bool is_table() const { return kind == Kind::kTable; }
};

using Variables = std::vector<Variable>;

}  // namespace muster::ps
